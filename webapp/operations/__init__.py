"""Metrics for Prometheus, and the page for operators with the figures of the last hour."""
