"""The history of streams: what is stored of their elements.

It answers questions of users to stored elements and layers, and the worker keeps it small and takes the snapshots that
joins need. The files themselves belong to `streaming.history`. Begin with `question`, which checks what a user asks.
"""
