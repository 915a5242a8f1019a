"""Rules: alarms about the answers of other queries, in time.

Regions tell which objects enter and leave the answers that rules watch (`watched.py`), and the assembler compares them.
Begin with `assembler.py`.
"""
