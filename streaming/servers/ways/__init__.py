"""The ways of evaluation: how the servers evaluate a group of plans, each in a room of its own.

A way has a part in home servers (`home.py`), in regional servers (`region.py`), or in the assembler (`assembler.py`),
which makes one answer of what all regions have told; a codec stores the state of a part. What several ways use lies in
the rooms beside this one. No way imports another.
"""
