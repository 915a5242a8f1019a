"""Make what Redis has replied to survive a power cut: sync the file to which it appends.

With ``appendfsync no``, Redis writes all commands of a turn to its file before it replies to them, and leaves it to
others when the file reaches the disk. So one sync makes everything durable that anybody got a reply to: many appends
share it, and only who tells others that something is safe waits for it. The other policies of Redis do not fit: with
``everysec``, a reply may come two seconds before the write, and with ``always``, every reply waits for the disk.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import redis

from streaming.state.files import sync, sync_content


class NotWritten(redis.ConnectionError):
    """Redis could not write its file, so its last replies would not survive a power cut; who can wait tries again."""


def asked_of(client: Any) -> Any:
    """Ask Redis, by a client that waits or one for asyncio, what `AppendFile.sync` needs to know."""
    pipeline = client.pipeline(transaction=False)
    pipeline.info("persistence")
    pipeline.config_get("append*")
    pipeline.config_get("dir")
    return pipeline.execute(raise_on_error=False)


class AppendFile:
    """The append-only file of a Redis on this machine; of another Redis, its operator decides when it is synced."""

    def __init__(self) -> None:
        self._named = -1  # the inode of the file whose name is known to be on the disk

    def sync(self, told: Sequence[Any]) -> None:
        """Write to the disk all that Redis had replied to before it was asked.

        Parameters
        ----------
        told : sequence
            The reply to `asked_of`.

        Raises
        ------
        NotWritten
            If the file lacks something, for example because the disk is full. Redis keeps it, and writes it later.
        redis.RedisError
            If Redis could not say.
        """
        state, options, folder = told
        if isinstance(state, Exception):
            raise state
        if isinstance(options, Exception) or isinstance(folder, Exception) or options.get("appendfsync") != "no":
            return
        path = Path(folder["dir"], options["appendfilename"])
        if not state["aof_enabled"] or not os.access(path, os.R_OK):
            return
        if state["aof_last_write_status"] != "ok":
            raise NotWritten(f"Redis must be able to write {path}; its last write failed")
        inode = sync_content(path)
        if inode != self._named:  # Redis has replaced the file by a shorter one, or this is the first time
            sync(path.parent)
            self._named = inode
