"""Delivery: alarms about incidents that reach people who have no browser open.

Whoever writes changes of incidents calls `outbox.enqueue` in the same transaction. A task sends what is due.
"""
