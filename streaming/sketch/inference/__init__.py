"""Inference from a sketch: regression from moments, and models that forecast a series of means.

`regression` fits from counts, means and co-moments alone, so it needs no elements. `series` has the steps of time that
models learn; `harmonic` and `holt_winters` are models, and `registry` knows them and those of other packages.

References
----------
Synopsis (2017), section 3.6.5: inferential queries.
"""
