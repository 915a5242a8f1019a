"""Bring saved queries into the engine: append an entry to the control log, then wait for its acknowledgement."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

import redis

from streaming.eventlog import RedisEventLog
from streaming.logs import LogNames, control_entry
from streaming.results import VIEW_NUMBERS
from webapp.models import DeletedQuery, Query

# How far back to look for acknowledgements that came after everybody had stopped waiting for them.
RECENT_S = 30


@dataclass(frozen=True)
class Acknowledgement:
    """The engine's answer to one control entry, in the state named `epoch`; `error` is empty if it was applied."""

    query: int
    revision: int
    error: str
    epoch: str


def entry_of(query: Query | DeletedQuery) -> dict[str, str]:
    """Return the control entry for a query: register with its plan if it should run, otherwise cancel."""
    if query.should_run:
        return control_entry("register", query=query.pk, revision=query.revision, plan=query.plan)
    return control_entry("cancel", query=query.pk, revision=query.revision)


def tell_engine(
    client: redis.Redis, names: LogNames, queries: Iterable[Query | DeletedQuery], timeout_s: float
) -> dict[int, Acknowledgement]:
    """Send the newest revisions of queries to the engine, and wait for its acknowledgements.

    Repeating a revision does no harm: the engine ignores one that it has already, but acknowledges it again.

    Parameters
    ----------
    client : redis.Redis
    names : LogNames
    queries : iterable of Query or DeletedQuery
    timeout_s : float
        How many seconds to wait in total.

    Returns
    -------
    dict of int to Acknowledgement
        By query; a query without an acknowledgement is missing.
    """
    wanted = {query.pk: query.revision for query in queries}
    event_log = RedisEventLog(client)
    position = event_log.newest(names.acks)
    event_log.append_all((names.control, entry_of(query)) for query in queries)
    answers: dict[int, Acknowledgement] = {}
    deadline = time.monotonic() + timeout_s
    while len(answers) < len(wanted) and (left_s := deadline - time.monotonic()) > 0:
        for entry in event_log.poll({names.acks: position}, 64, left_s).get(names.acks, ()):
            position = entry.position
            for answer in acknowledgements(entry.fields):
                if answer.revision >= wanted.get(answer.query, float("inf")):
                    answers[answer.query] = answer
    return answers


def acknowledgements(fields: dict[bytes, bytes]) -> list[Acknowledgement]:
    """Return the acknowledgements in one entry of their log."""
    epoch = fields[b"epoch"].decode()
    return [Acknowledgement(a["query"], a["revision"], a["error"] or "", epoch) for a in json.loads(fields[b"acks"])]


def recent_answers(client: redis.Redis, names: LogNames) -> dict[int, Acknowledgement]:
    """Return the engine's newest acknowledgement of each saved query within the last `RECENT_S`, by query."""
    now_s, _ = client.time()  # Redis makes the log's entry ids from the same clock
    entries = RedisEventLog(client).read(names.acks, f"{(now_s - RECENT_S) * 1000}-0")
    return {a.query: a for entry in entries for a in acknowledgements(entry.fields) if a.query < VIEW_NUMBERS}


def engine_epoch(client: redis.Redis, names: LogNames) -> str:
    """Return the epoch of the engine's state; empty before the engine's first report."""
    return (client.hget(names.engine, "epoch") or b"").decode()
