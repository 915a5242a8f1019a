"""The engine's report about itself, in the hash `LogNames.engine`."""

import time

from streaming.logs import Log, write_report

MOST_CHARACTERS = 1_000


def forget(log: Log) -> None:
    """Delete the report of an earlier run, so that the report has only batches of this run."""
    log.client.delete(log.names.engine)


def report(log: Log, epoch: str) -> None:
    """Write the heartbeat, the epoch of the state, and the backlog. The tasks write the number of the last batch."""
    fields = {"at_us": time.time_ns() // 1000, "epoch": epoch, "backlog": log.backlog()}
    write_report(log.client, log.names.engine, fields)


def report_state(log: Log, broken: str = "", refused: str = "") -> None:
    """Report what was broken in the state when the engine started, and why the engine refused to start with it."""
    words = {"broken": broken[:MOST_CHARACTERS], "refused": refused[:MOST_CHARACTERS]}
    write_report(log.client, log.names.engine, words)


def report_standby(log: Log) -> None:
    """Write the heartbeat of the engine that stands by."""
    write_report(log.client, log.names.engine, {"standby_us": time.time_ns() // 1000})
