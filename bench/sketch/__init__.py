"""What the sketch of a stream takes, how fast it answers, and how often its bounds hold: ``python -m bench.sketch``."""
