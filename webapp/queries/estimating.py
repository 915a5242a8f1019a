"""Weigh queries before they are registered: what they would compare, against the room that a batch has for it."""

from base64 import b64decode
from functools import lru_cache
from math import floor, log10
from typing import Any, cast

import orjson
import redis
from django.db.models import QuerySet
from django.utils.translation import gettext

from streaming.elements import stream_number
from streaming.keys import LogNames
from streaming.language import Numeral, thousands
from streaming.layers import InvalidLayer
from streaming.operators import estimates
from streaming.operators.allowance import FOUND
from streaming.operators.box_sample import BoxSample, together, unpacked
from streaming.operators.estimates import COMPARED, MOST_TIMES, Estimate, Known
from streaming.plans import parse_plan
from streaming.redis_client import read_fields
from streaming.spaces import Space
from webapp.bus.redis import client
from webapp.models import Layer, Stream
from webapp.models.layers import layer_store
from webapp.words.refusals import Refused

# The codes of refusals: of a query that nobody can add, and of one that has to be confirmed.
NO_ROOM, CONFIRM = "room", "confirm"


def weigh(document: dict[str, Any], layers: QuerySet[Layer], confirmed: bool) -> None:
    """Refuse a query that would compare far too many pairs, and one that may be too many unless it is confirmed.

    Parameters
    ----------
    document : dict
        The plan in its full form.
    layers : QuerySet of Layer
        Those that whoever asks may see.
    confirmed : bool
        Whether they want the query although there may be no room for it.

    Raises
    ------
    Refused
        ``room`` or ``confirm``, each with the `estimate`. Nothing is refused while too little is known.
    """
    found = estimate(document, layers)
    if found is None or not found.doubtful:
        return
    values: dict[str, Any] = {name: about(number) for name, number in found.document().items()}
    if found.hopeless:
        rule = gettext("a query must compare at most %(times)s times as many pairs as a batch has room for, %(room)s")
        got = gettext("this one would compare about %(pairs)s; make its distance or its area smaller")
        raise Refused(NO_ROOM, f"{rule % (values | {'times': MOST_TIMES})}; {got % values}", estimate=found.document())
    if not confirmed:
        rule = gettext("a query for which there may be no room must be confirmed: a batch has room for %(room)s pairs")
        got = gettext(
            "this one would compare about %(pairs)s and tell %(matches)s at most, each of which counts as %(found)s"
        )
        raise Refused(CONFIRM, f"{rule % values}; {got % (values | {'found': FOUND})}", estimate=found.document())


def estimate(document: dict[str, Any], layers: QuerySet[Layer]) -> Estimate | None:
    """Estimate what a query would cost now, given its plan in full form; None if too little is known."""
    stream = Stream.objects.select_related("space").get(name=document["stream"])
    space = stream.space.parsed
    plan = parse_plan(document, space)
    streams, layer = estimates.needs(plan)
    if not streams:
        return None
    features = None
    if layer is not None:
        features = _features(layers.filter(space=stream.space, name=layer, version__isnull=False).first())
        if features is None:
            return None
    try:
        objects = _objects(space)
    except redis.RedisError:
        return None  # no request waits for Redis
    if objects is None:
        return None
    numbers = {name: stream_number(name) for name in streams}
    of = {name: objects[number] for name, number in numbers.items() if number in objects}
    return estimates.estimate(plan, Known(of, features), space)


def about(number: float) -> Numeral:
    """Return a number with two digits, as an estimate has no more.

    Examples
    --------
    >>> str(about(8_976_543)), str(about(7))
    ('9,000,000', '7')
    """
    digits = floor(log10(number)) - 1 if number >= 100 else 0
    return thousands(round(number, -digits))


def _objects(space: Space) -> dict[int, BoxSample] | None:
    """Return samples of the objects that the engine has, by stream number; None if it has reported none."""
    key = LogNames(space.name).engine
    (told,) = read_fields(client(), key, ["tasks"])
    if told is None:
        return None
    payloads = read_fields(client(), key, [f"objects:{task}" for task in range(int(told))])
    return together([unpacked(b64decode(orjson.loads(payload))) for payload in payloads if payload])


def _features(layer: Layer | None) -> BoxSample | None:
    """Return a sample of the features of a layer; None if there is none, or it cannot be read."""
    if layer is None or not layer.features:
        return None
    try:
        return _sampled(str(layer_store().root), layer.name, cast("int", layer.version), layer.features)
    except (OSError, InvalidLayer):
        return None


@lru_cache(maxsize=64)
def _sampled(root: str, name: str, version: int, features: int) -> BoxSample:
    """Return a sample of the features of a version of a layer, which never change."""
    return BoxSample.drawn(layer_store().sample(name, version, COMPARED), COMPARED, count=features)
