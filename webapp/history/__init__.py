"""The history of streams: what is stored of their elements.

`questions` of users to stored elements and layers are checked and answered here; the worker's `upkeep` removes what is
too old, and its `snapshots` are what queries join with. The files themselves belong to `streaming.history`. Begin with
`questions.question`.
"""
