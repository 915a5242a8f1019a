"""What the demonstration begins with beside its streams: a layer of port areas, and example queries."""
