"""Sets of values in a sketch: whether a value was there, how many there were, and how often each.

Each entry is about one feature in one coarse cell and one bin of time. An entry with few different values keeps the
values' hashes and how often each came, so its answers are exact. An entry with many has a Bloom filter, a HyperLogLog
and a count-min sketch instead, all of fixed size. `hashing` makes the hashes, `entries` and `sets` keep and merge them,
`questions` answers.

References
----------
Synopsis (2017), section 3.6.4: set queries.
"""
