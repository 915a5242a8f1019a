"""The workload of PLACE* (2007, section 6): moving ranges and nearest neighbours over half a million objects."""
