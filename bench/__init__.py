"""Lookout's benchmark (``make bench``): the whole stack under load, measured from outside."""
