"""Encounters: two objects that stay near each other for some time."""
