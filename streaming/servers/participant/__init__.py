"""The participating server: a region's part of the answers of distributed queries."""
