"""Fill the database of a Lookout that is attacked, and have a recording replayed.

It runs as its own process, in the environment of the stack: ``python -m bench.attacks.prepare {make,replay,stop}``.
"""

import argparse
import json
import os
from typing import Any

import django

from bench import joins
from bench.prepare import WIRE_DECODER
from bench.scenarios import JOINS
from streaming.plans import parse_plan, plan_document

SHIPS, TUGS, RECORDED = "ships", "tugs", "recorded"
# Of attackers: so many that each may have its part of 150 connections.
ACCOUNTS = 6
# In the middle of `COUNTRY`, where the ships are.
BOX = {"lo": [-3.0, -3.0], "hi": [3.0, 3.0]}
OTHERS_PLANS: tuple[dict[str, Any], ...] = (
    {"stream": SHIPS, "compare": BOX},
    {"stream": SHIPS, "around": {"at": [0.0, 0.0], "radius": 300_000}},
    {"stream": SHIPS, "kind": "join", "area": BOX, "join": {"layer": joins.LAYER, "predicate": "within"}},
)


def make(recording: str) -> dict[str, Any]:
    """Make streams, a layer, the other user with queries, and accounts for attackers.

    Returns
    -------
    dict
        The other user's ``token`` and ``queries``; ``accounts``, a list of the attackers' ``token`` and ``login``,
        a path that logs in once; and ``fields``, the names of the fields of each type of message.
    """
    from django.contrib.auth import get_user_model

    from webapp.consumers.messages import FIELDS
    from webapp.models import Query

    for name in (SHIPS, TUGS):
        _stream(name, "tcp_listener", {"port": 0}, "csv", WIRE_DECODER, stored=True)
    if recording:
        _stream(RECORDED, "file", {"path": recording, "speed": 0, "restamp": True}, "ais", {}, enabled=False)
    _layer()
    get_user_model().objects.create_superuser("admin")
    other = _user("other")
    for number, document in enumerate(OTHERS_PLANS):
        plan = parse_plan(document)
        Query.objects.create(owner=other, name=f"query {number}", plan=plan_document(plan), stream=plan.stream)
    queries = list(Query.objects.filter(owner=other).order_by("pk").values_list("pk", flat=True))
    accounts = [_account(f"attacker-{number}") for number in range(ACCOUNTS)]
    fields = {kind: sorted(names) for kind, names in FIELDS.items()}
    return {"token": _token(other), "queries": queries, "accounts": accounts, "fields": fields}


def _user(name):
    from django.contrib.auth import get_user_model

    return get_user_model().objects.create_user(name)


def _account(name):
    from django.urls import reverse

    from webapp.models import LoginLink

    user = _user(name)
    return {"token": _token(user), "login": reverse("login-once", args=[LoginLink.issue(user)])}


def _token(user):
    from webapp.models import ApiToken

    token = ApiToken(user=user, name="bench")
    secret = token.draw()
    token.save()
    return secret


def _stream(name, transport, options, decoder, decoder_options, **more):
    from webapp.models import Stream

    sent = {"transport": transport, "transport_options": options, "decoder": decoder}
    Stream.objects.create(name=name, title=name, icon="ship", decoder_options=decoder_options, **sent, **more)


def _layer():
    from webapp.models import Layer, Space
    from webapp.models.layers import layer_store

    layer = Layer(name=joins.LAYER, space=Space.objects.get(pk="earth"), status=Layer.READY)
    store = layer_store()
    version = store.write(layer.name, joins.layer_table(JOINS["join-areas-100k"]))
    layer.take(version, store.manifest(layer.name, version).summary)
    layer.save()


def replay(loop: bool | None) -> dict[str, Any]:
    """Begin to replay the recording, for ever or once; end that if `loop` is None."""
    from webapp.models import Stream

    stream = Stream.objects.get(name=RECORDED)
    stream.enabled = loop is not None
    stream.transport_options = {**stream.transport_options, "loop": bool(loop)}
    stream.save()
    return {"enabled": stream.enabled}


def main() -> None:
    """Print what was made, as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks.prepare", description=main.__doc__)
    parser.add_argument("what", choices=("make", "once", "loop", "stop"))
    parser.add_argument("--recording", default="", help="a file in the folder of feeds")
    arguments = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    django.setup()
    if arguments.what == "make":
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        print(json.dumps(make(arguments.recording)))
    else:
        print(json.dumps(replay({"once": False, "loop": True, "stop": None}[arguments.what])))


if __name__ == "__main__":
    main()
