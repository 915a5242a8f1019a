"""Continuous queries for nearest neighbours."""
