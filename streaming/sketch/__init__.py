"""A sketch of a stream: what was so anywhere at any time, from memory, within a stated error (Synopsis).

`settings` says what is sketched; `sketch` grows, merges and splits sketches; `selection` says which part is asked, and
`chosen` finds it; `statistics` and `density` answer. docs/sketches.md explains the structure and the bounds.

References
----------
T. Buddhika et al., "Synopsis: A Distributed Sketch over Voluminous Spatiotemporal Observational Streams in Support of
Real-Time Query Evaluations", 2017, sections 3.1 and 3.6.
"""
