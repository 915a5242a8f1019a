"""Attacks through the websocket."""

import asyncio
import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from websockets.asyncio.client import connect

from bench.attacks.doors import Attacker, Socket
from bench.attacks.followed import Followed
from bench.attacks.prepare import RECORDED, SHIPS, TUGS
from bench.scenarios import COUNTRY

FAR_M = 20_000_000.0
# Readers and clients that do not read come with so many accounts: a user may have 32 connections.
READERS, DEAF, EACH = 100, 150, 30
CORRIDORS, VERTICES = 100, 999
NEIGHBOURS, K = 200, 1_000
STORED_S = 240.0
WORLD_VIEW = {"lo": [-180.0, -90.0], "hi": [180.0, 90.0]}
BACKTESTS = 2
# Of the burst: ships meet within so many metres; a snapshot comes within so many seconds.
MEET_M, SNAPSHOT_S = 2_000.0, 20.0


async def _plans(attacker: Attacker, plans: Sequence[Mapping[str, Any]]) -> None:
    """Register queries, subscribe them, and read their answers until ended."""
    async with attacker.socket() as socket:
        for plan in plans:
            if number := await attacker.register(socket, plan):
                await socket.tell("query.subscribe", query=number, format="arrow", joined=True)
        await socket.closed()


async def joins(attacker: Attacker) -> None:
    """Join ships with ships on the other side of the globe, three times, at distances that no index can share."""
    far = [{"stream": SHIPS, "predicate": "dwithin", "distance": FAR_M + number} for number in range(3)]
    await _plans(attacker, [{"stream": SHIPS, "kind": "join", "join": join} for join in far])


async def window_join(attacker: Attacker) -> None:
    """Join a recording with itself in windows of 70 s, of which one begins every 7 s."""
    join = {"stream": RECORDED, "predicate": "dwithin", "distance": FAR_M}
    plan = {"stream": RECORDED, "kind": "window_join", "window_s": 70, "slide_s": 7, "lateness_s": 1, "join": join}
    await _plans(attacker, [plan])


async def table_join(attacker: Attacker) -> None:
    """Join what was stored of two streams, again and again, in one frame."""
    async with attacker.socket() as socket:
        while True:
            sides = {"left": {"stored": SHIPS}, "right": {"stored": TUGS}, "limit": 10_000}
            span = {"from": time.time() - STORED_S}
            reply = await socket.ask("table.join", 120.0, **sides, span=span, predicate="dwithin", distance=FAR_M)
            attacker.tally[reply["type"]] += 1


def corridor(number: int, vertices: int = VERTICES) -> dict[str, Any]:
    """Return a corridor that winds through the country."""
    west, south, east, north = COUNTRY
    share = np.linspace(0, 1, vertices)
    turn = 0.02 * (number + 1) + share * 40 * np.pi
    line = [west + (east - west) * share, (south + north) / 2 + 0.45 * (north - south) * np.sin(turn)]
    return {"corridor": {"line": np.round(np.stack(line, axis=1), 6).tolist(), "width_m": 5_000 + number}}


async def corridors(attacker: Attacker) -> None:
    """Watch long corridors."""
    await _plans(attacker, [{"stream": SHIPS, "area": corridor(number)} for number in range(CORRIDORS)])


async def neighbours(attacker: Attacker) -> None:
    """Ask for the nearest thousand, around ships and around places, two hundred times."""
    rng = random.Random(4)
    places = [[round(rng.uniform(*COUNTRY[::2]), 4), round(rng.uniform(*COUNTRY[1::2]), 4)] for _ in range(NEIGHBOURS)]
    around = [{"key": f"object {n}"} if n % 2 else {"at": place} for n, place in enumerate(places)]
    await _plans(attacker, [{"stream": SHIPS, "kind": "knn", "k": K, "around": one} for one in around])


async def readers(attacker: Attacker) -> None:
    """Show the whole world on many connections, and read everything."""
    view = {"streams": [SHIPS, TUGS], "format": "json"}

    async def reader(number):
        async with attacker.socket(number // EACH) as socket:
            # Views that differ are queries that differ.
            area = {"lo": [-180.0, -90.0 + number / 1e3], "hi": WORLD_VIEW["hi"]}
            await socket.tell("view.subscribe", area=area, **view)
            await socket.closed()

    await _many(attacker, reader, READERS)


async def deaf(attacker: Attacker) -> None:
    """Show the whole world on many connections, and read nothing."""

    async def listener(number):
        message = {"type": "view.subscribe", "streams": [SHIPS, TUGS], "area": WORLD_VIEW, "format": "json"}
        options = {"max_size": None, "compression": None, "max_queue": 1, "ping_interval": None}
        async with connect(attacker.socket_url, additional_headers=attacker.token(number // EACH), **options) as socket:
            await socket.send(json.dumps(message))
            attacker.tally["sent"] += 1
            await socket.wait_closed()
            attacker.tally[f"closed {socket.close_code}"] += 1

    await _many(attacker, listener, DEAF)


async def backtests(attacker: Attacker) -> None:
    """Have two back-tests of one user at once, again and again."""
    join = {"stream": SHIPS, "predicate": "dwithin", "distance": FAR_M}

    async def tester(number):
        async with attacker.socket() as socket:
            while True:
                plan = {"stream": SHIPS, "kind": "join", "join": {**join, "distance": FAR_M + number}}
                reply = await socket.ask("backtest.start", 300.0, plan=plan, span={"from": time.time() - STORED_S})
                attacker.tally[reply["type"]] += 1

    await _many(attacker, tester, BACKTESTS)


async def burst(attacker: Attacker) -> None:
    """Join a recording that is replayed at full speed; see whether the client then has the whole answer."""
    join = {"stream": RECORDED, "predicate": "dwithin", "distance": MEET_M}
    async with attacker.socket() as socket:
        number = await attacker.register(socket, {"stream": RECORDED, "kind": "join", "join": join})
        if number is None:
            return
        socket.followed = Followed(number)
        await socket.tell("query.subscribe", query=number, format="arrow", joined=True)
        try:
            await socket.closed()
        finally:
            await _compare(attacker, socket, socket.followed)


async def _compare(attacker: Attacker, socket: Socket, followed: Followed) -> None:
    """Count the pairs of the answer, and those that the client lacks or has in excess; nothing is replayed any more."""
    followed.asked = asyncio.get_running_loop().create_future()
    await socket.tell("query.snapshot", query=followed.query)
    try:
        async with asyncio.timeout(SNAPSHOT_S):
            whole = await followed.asked
    except TimeoutError:
        attacker.tally["no snapshot"] += 1
        return
    attacker.tally["pairs"] = len(whole)
    attacker.tally["not whole"] = len(whole ^ followed.members)


async def _many(attacker: Attacker, one, count: int) -> None:
    """Run one coroutine for each number at once; one that is disconnected comes again."""

    async def again(number):
        while True:
            await attacker.bounded(one(number))
            await asyncio.sleep(1.0)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(again(number))
