"""Pairs of objects that will come close to each other within minutes, if they keep their course and speed."""
