"""Objects whose track is in an area, although their positions are noisy."""
