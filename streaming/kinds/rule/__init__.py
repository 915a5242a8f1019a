"""Rules: objects for which a condition over several answers holds, in time."""
