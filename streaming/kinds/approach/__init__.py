"""Objects that will be in an area within minutes, if they keep their course and speed."""
