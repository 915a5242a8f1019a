"""Fill the database of a stack under load: users, streams and queries.

It runs as its own process, in the environment of the stack: ``python -m bench.prepare {make,register,login} ...``.
"""

import argparse
import json
import os
import time

import django

from bench import joins
from bench.scenarios import FRAMES_STREAM, JOINS, QUERIES_EACH, STREAM, WIRE_STREAM, query_boxes, watched
from streaming.plans import parse_plan, plan_document

WATCHER = "watcher"
REGISTERED_WITHIN_S = 600.0
WIRE_DECODER = {
    "columns": {"key": "key", "time": "time_us", "lon": "lon", "lat": "lat"},
    "time_format": "epoch_us",
    "properties": {"speed_mps": {"name": "speed_mps", "unit": "number"}},
    "constants": {"kind": "ship"},
    "header": "key,time_us,lon,lat,speed_mps",
}


def make(queries: int, wire_port: int, joined: str = "", each: int = QUERIES_EACH) -> dict:
    """Make users, streams, queries and perhaps a layer to be joined.

    Returns
    -------
    dict
        The watcher's ``token`` and ``queries``; and under ``users``, if they have fewer queries than a user may have,
        a list of the others' tokens and queries.
    """
    from django.contrib.auth import get_user_model

    # A load that writes blocks into the log does not use its stream's listener, which may have any free port.
    for name, port in ((STREAM, 0), (FRAMES_STREAM, 0), (WIRE_STREAM, wire_port)):
        _stream(name, port)
    get_user_model().objects.create_superuser("admin")
    watcher = get_user_model().objects.create_user(WATCHER)
    plans = _joins(JOINS[joined]) if joined else _ranges(queries, WIRE_STREAM if wire_port else STREAM)
    others = _queries(watcher, plans, each)
    users = [_access(user) for user in others] if each < QUERIES_EACH else []
    return {**_access(watcher), "users": users}


def _access(user):
    """Return a new token of a user, and the numbers of the user's queries."""
    from webapp.models import ApiToken, Query

    token = ApiToken(user=user, name="bench")
    secret = token.draw()
    token.save()
    return {
        "token": secret,
        "queries": list(Query.objects.filter(owner=user).order_by("pk").values_list("pk", flat=True)),
    }


def _stream(name, port):
    from webapp.models import Stream

    transport = {"transport": "tcp_listener", "transport_options": {"port": port}}
    Stream.objects.create(name=name, title=name, icon="ship", decoder="csv", decoder_options=WIRE_DECODER, **transport)


def _ranges(queries, stream):
    boxes = query_boxes(queries).tolist()
    return [{"stream": stream, "compare": {"lo": box[:2], "hi": box[2:]}} for box in boxes]


def _joins(scenario):
    """Store the layer of a scenario; return the plans of its joins."""
    from webapp.models import Layer, Space
    from webapp.models.layers import layer_store

    layer = Layer(name=joins.LAYER, space=Space.objects.get(pk="earth"), status=Layer.READY)
    store = layer_store()
    version = store.write(layer.name, joins.layer_table(scenario))
    layer.take(version, store.manifest(layer.name, version).summary)
    layer.save()
    return joins.plans(scenario)


def _queries(watcher, plans, each):
    """Save the queries, the watched ones for the watcher, the rest for other users; return those users."""
    from django.contrib.auth import get_user_model

    from webapp.models import Query

    mine = set(watched(len(plans)))
    others = [get_user_model().objects.create_user(f"user-{number}") for number in range(-(-len(plans) // each))]
    rows = []
    for number, document in enumerate(plans):
        plan = parse_plan(document)
        owner = watcher if number in mine else others[number // each]
        rows.append(Query(owner=owner, name=f"query {number}", plan=plan_document(plan), stream=plan.stream))
    Query.objects.bulk_create(rows, batch_size=500)
    return others


def register() -> dict:
    """Tell the engine of the layers and all queries, and wait for its answers; return how many queries run."""
    from webapp.bus.redis import waiting_client
    from webapp.layers.versions import tell_engine
    from webapp.models import Query
    from webapp.models.spaces import spaces_by_name
    from webapp.recording.settling import settle_acknowledged
    from webapp.tasks import reconcile

    tell_engine()
    wanted, running, deadline_s = Query.objects.count(), 0, time.monotonic() + REGISTERED_WITHIN_S
    reconcile()
    while running < wanted and time.monotonic() < deadline_s:
        # As the worker does, where there is one.
        if not settle_acknowledged(waiting_client(), spaces_by_name(), 1.0):
            reconcile()
        running = Query.objects.filter(status=Query.RUNNING).count()
    return {"running": running}


def login() -> dict:
    """Return a path that logs the watcher in, once."""
    from django.contrib.auth import get_user_model
    from django.urls import reverse

    from webapp.models import LoginLink

    watcher = get_user_model().objects.get(username=WATCHER)
    return {"login": reverse("login-once", args=[LoginLink.issue(watcher)])}


def main() -> None:
    """Print what was made, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.prepare", description=main.__doc__)
    parser.add_argument("what", choices=("make", "register", "login"))
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--wire-port", type=int, default=0)
    parser.add_argument("--joins", default="")
    parser.add_argument("--each", type=int, default=QUERIES_EACH)
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    if arguments.what == "make":
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        answer = make(arguments.queries, arguments.wire_port, arguments.joins, arguments.each)
    else:
        answer = {"register": register, "login": login}[arguments.what]()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
