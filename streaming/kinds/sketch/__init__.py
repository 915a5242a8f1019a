"""Queries of a stream's sketch: statistics, densities, sets, relations and forecasts of what has passed."""
