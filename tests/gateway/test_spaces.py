"""Spaces that come, are defined anew, and go while a gateway runs."""

from bench.live import wait_for
from streaming.elements import bounds_of
from streaming.eventlog import RedisEventLog
from streaming.gateway.intake import Intake
from streaming.keys import SPACES_KEY, STREAMS_CHANNEL, LogNames
from streaming.spaces import parse_space, space_text
from tests.gateway.scenes import control, definition, feature, ingested, send, until
from tests.gateway.test_gateway import FAST, define, gateway_at, health, port_of

SHARE = {"kind": "csv", "header": "key,time,price", "time_format": "epoch_s", "coordinates": ["price"]}


def prices(hi=10_000):
    """Return a space of prices."""
    return parse_space({"name": "prices", "dimensions": [{"name": "price", "lo": 0, "hi": hi}]})


def publish(client, space):
    """Write the definition of a space and tell of it, as the web application does."""
    client.hset(SPACES_KEY, space.name, space_text(space))
    client.publish(STREAMS_CHANNEL, space.name)


async def test_a_stream_of_a_space_that_comes_later_waits_for_it_with_the_reason(redis_server, redis_client):
    define(redis_client, definition("shares", {"kind": "tcp_listener", "port": 0}, decoder=SHARE, space="prices"))
    async with gateway_at(redis_server) as gateway:
        await until(lambda: health(redis_client, "shares").get("state") == "failed")
        assert health(redis_client, "shares")["error"] == "space must be one of earth; got 'prices'"
        publish(redis_client, prices())
        await send(await port_of(gateway, "shares"), b"AAPL,1,99.5", b"AAPL,2,20000")
        written = await until(lambda: ingested(redis_client, "shares", space=prices()))
        assert bounds_of(written["bounds"]).tolist() == [[99.5, 99.5]]
        assert health(redis_client, "shares")["space"] == "prices"
        await until(lambda: health(redis_client, "shares")["malformed"] == {"position out of range": 1})
        await until(
            lambda: control(redis_client, "tick", "prices") and redis_client.hgetall(LogNames("prices").gateway)
        )
    assert control(redis_client, "stream", "prices") == [
        {"op": "stream", "stream": "shares", "ttl_s": 60, "stored": False, "sketch": None}
    ]
    assert control(redis_client, "stream") == []


async def test_a_space_that_is_defined_anew_has_its_streams_decoded_anew(redis_server, redis_client):
    publish(redis_client, prices())
    define(redis_client, definition("shares", {"kind": "tcp_listener", "port": 0}, decoder=SHARE, space="prices"))
    async with gateway_at(redis_server) as gateway:
        await port_of(gateway, "shares")
        running = gateway.streams["shares"]
        publish(redis_client, prices(hi=30_000))
        await until(lambda: gateway.streams.get("shares") not in (None, running))
        await send(await port_of(gateway, "shares"), b"AAPL,2,20000")
        assert await until(lambda: ingested(redis_client, "shares", space=prices()))


async def test_a_space_that_is_defined_anew_while_the_gateway_reports_of_another_ends_nothing(
    redis_server, redis_client, monkeypatch
):
    publish(redis_client, prices())
    live, gateways, changed = Intake.live, [], []

    def held_up(intake, now_us):
        """Report of the first space once the next one is another."""
        known = gateways[0].intakes if gateways else {}
        if intake.space.name == "earth" and "prices" in known and not changed:
            was = known["prices"]
            publish(redis_client, prices(hi=30_000))
            wait_for(lambda: known.get("prices") not in (None, was), "the space is defined anew")
            changed.append(True)
        live(intake, now_us)

    monkeypatch.setattr(Intake, "live", held_up)
    async with gateway_at(redis_server) as gateway:
        gateways.append(gateway)
        await until(lambda: changed)
        ticks = len(control(redis_client, "tick", "prices"))
        await until(lambda: len(control(redis_client, "tick", "prices")) > ticks)


async def test_a_space_whose_engine_is_away_holds_up_no_other(redis_server, redis_client):
    publish(redis_client, prices())
    define(
        redis_client,
        definition("shares", {"kind": "tcp_listener", "port": 0}, decoder=SHARE, space="prices"),
        definition("s", {"kind": "tcp_listener", "port": 0}),
    )
    for number in range(FAST.live_backlog + 1):
        RedisEventLog(redis_client).append(LogNames("prices").ingest(0), {"number": number})
    async with gateway_at(redis_server) as gateway:
        await send(await port_of(gateway, "shares"), b"AAPL,1,99.5")
        await until(lambda: health(redis_client, "shares").get("elements") == 1)
        await send(await port_of(gateway, "s"), feature("k", 1).rstrip())
        await until(lambda: ingested(redis_client, "s").num_rows == 1)
        assert RedisEventLog(redis_client).length(LogNames("prices").ingest(0)) == FAST.live_backlog + 1
        assert RedisEventLog(redis_client).length(LogNames("prices").ingest(1)) == 0


async def test_a_space_that_goes_is_ticked_no_more(redis_server, redis_client):
    publish(redis_client, prices())
    async with gateway_at(redis_server) as gateway:
        await until(lambda: control(redis_client, "tick", "prices"))
        redis_client.hdel(SPACES_KEY, "prices")
        redis_client.publish(STREAMS_CHANNEL, "prices")
        await until(lambda: set(gateway.intakes) == {"earth"})
