"""A Redis that is full of what is not Lookout's."""

from contextlib import contextmanager

ROOM = 1_000_000
FOREIGN = "foreign"


@contextmanager
def full(client):
    """Have Redis full of a foreign key until the block ends."""
    client.config_set("maxmemory", client.info("memory")["used_memory"] + ROOM)
    client.setrange(FOREIGN, 4 * ROOM, "x")
    try:
        yield
    finally:
        client.delete(FOREIGN)
        client.config_set("maxmemory", 0)
