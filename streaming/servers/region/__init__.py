"""The regional server: it keeps the objects in its part of the space, and the answers that they belong to."""
