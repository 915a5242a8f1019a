"""What an answer tells once reaches a client that reads slowly, or the client is told how much did not."""

from tests.webapp.conftest import INSIDE, PLAN
from tests.webapp.test_answers import registered
from webapp.hub.recent import RecentBatches

# Each report is told once, and no answer is kept.
REPORTS = PLAN | {"emit": "all"}
BATCHES, SHIPS = 9, 10


def keys(message):
    return [row["key"] for row in message["rows"]]


async def told(socket, number, count):
    """Return the keys of the next reports, at least so many, that a client is told."""
    found = []
    while len(found) < count:
        found += keys(await socket.hear("answer.change", query=number))
    return found


async def burst(engine, fast, number):
    """Let many ships report, batch by batch; return those that a client is told that reads."""
    found = []
    for batch in range(BATCHES):
        engine.move({f"ship {batch}.{ship}": INSIDE for ship in range(SHIPS)})
        found += await told(fast, number, SHIPS)
    return found


async def subscribed(fast, slow):
    """Subscribe both clients to a query; return its number."""
    number = await registered(fast, REPORTS)
    for socket in (fast, slow):
        await socket.tell("query.subscribe", query=number)
        await socket.hear("answer.snapshot", query=number)
    return number


async def test_a_burst_that_the_queue_does_not_hold_comes_whole_as_the_client_reads(
    project, engine, streams, user, connect, gate
):
    project.MAX_QUEUED_BYTES = 4_000
    async with connect(user) as fast, connect(user, query="slow") as slow:
        number = await subscribed(fast, slow)
        gate.clear()
        reports = await burst(engine, fast, number)
        gate.set()
        assert await told(slow, number, len(reports)) == reports
        engine.move({"one more": INSIDE})
        assert await told(slow, number, 1) == await told(fast, number, 1) == ["one more"]
        assert not [message for message in slow.skipped if message["type"] == "answer.missed"]


async def test_what_is_kept_no_longer_is_counted_and_the_client_is_told(
    project, engine, streams, user, connect, gate, monkeypatch
):
    project.MAX_QUEUED_BYTES = 4_000
    monkeypatch.setattr(RecentBatches.__init__, "__defaults__", (20_000, RecentBatches.__init__.__defaults__[1]))
    async with connect(user) as fast, connect(user, query="slow") as slow:
        number = await subscribed(fast, slow)
        gate.clear()
        reports = await burst(engine, fast, number)
        gate.set()
        missed = await slow.hear("answer.missed", query=number)
        changes = [one for one in slow.skipped if one["type"] == "answer.change" and one["query"] == number]
        heard = [key for change in changes for key in keys(change)]
        assert 0 < missed["missed"] == len(reports) - len(heard) < len(reports) and not missed["uncounted"]
        assert heard == [report for report in reports if report in set(heard)]
