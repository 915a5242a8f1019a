"""The participating server: a region's part of the answers to distributed queries."""
