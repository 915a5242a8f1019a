"""The control log: append what the engine must do with saved queries, and read what it acknowledges."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

import redis

from streaming.eventlog import Entry
from streaming.keys import LogNames
from streaming.logs import control_entry
from streaming.redis_client import read_field
from webapp.bus.redis import event_log
from webapp.models import DeletedQuery, Query


@dataclass(frozen=True)
class Acknowledgement:
    """The engine's answer to one control entry, in the state named `epoch`; `error` is empty if it was applied."""

    query: int
    revision: int
    error: str
    epoch: str


def entry_of(query: Query | DeletedQuery) -> dict[str, str]:
    """Return the control entry for a query: register with its plan if it should run, otherwise cancel."""
    if isinstance(query, Query) and query.should_run:
        told = {"query": query.pk, "revision": query.revision, "plan": query.plan, "owner": query.counts_for}
        return control_entry("register", **told)
    return control_entry("cancel", query=query.pk, revision=query.revision)


def tell_engine(client: redis.Redis, space: str, queries: Iterable[Query | DeletedQuery]) -> None:
    """Append the newest revisions of queries to the control log of a space.

    Repeating a revision does no harm: the engine ignores one that it has already, but acknowledges it again.
    """
    control = LogNames(space).control
    event_log(client).append_all((control, entry_of(query)) for query in queries)


def acknowledgements(entry: Entry) -> list[Acknowledgement]:
    """Return the acknowledgements in one entry of their log."""
    epoch = entry.fields[b"epoch"].decode()
    told = json.loads(entry.fields[b"acks"])
    return [Acknowledgement(a["query"], a["revision"], a["error"] or "", epoch) for a in told]


def engine_epoch(client: redis.Redis, names: LogNames) -> str:
    """Return the epoch of the engine's state; empty before the engine's first report."""
    return (read_field(client, names.engine, "epoch") or b"").decode()
