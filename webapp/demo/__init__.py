"""What the demonstration has besides its streams: a layer of port areas, and example queries."""
