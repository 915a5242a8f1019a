"""Bring saved queries into the engine: append an entry to the control log, then wait for its acknowledgement."""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass

import redis

from streaming.logs import FIRST, LogNames, control_entry
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
    position = last_id(client, names.acks)
    with client.pipeline(transaction=False) as pipeline:
        for query in queries:
            pipeline.xadd(names.control, entry_of(query))
        pipeline.execute()
    answers: dict[int, Acknowledgement] = {}
    deadline = time.monotonic() + timeout_s
    while len(answers) < len(wanted) and (left_s := deadline - time.monotonic()) > 0:
        for _, entries in client.xread({names.acks: position}, block=max(1, int(left_s * 1000))) or ():
            position = entries[-1][0]
            for answer in (a for _, fields in entries for a in acknowledgements(fields)):
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
    entries = client.xrange(names.acks, min=(now_s - RECENT_S) * 1000)
    return {a.query: a for _, fields in entries for a in acknowledgements(fields) if a.query < VIEW_NUMBERS}


def engine_epoch(client: redis.Redis, names: LogNames) -> str:
    """Return the epoch of the engine's state; empty before the engine's first report."""
    return (client.hget(names.engine, "epoch") or b"").decode()


def last_id(client: redis.Redis, log: str) -> bytes | str:
    """Return the id of a log's newest entry, after which a reader continues; `FIRST` if the log is empty."""
    newest = client.xrevrange(log, count=1)
    return newest[0][0] if newest else FIRST
