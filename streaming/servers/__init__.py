"""Servers: pure steps from a state and an input to a state and an output."""
