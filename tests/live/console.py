"""Commands to the database of a running Lookout: JSON ``[name, argument, ...]`` a line, a JSON answer a line."""

import io
import json
import sys

import numpy as np
from django.contrib.auth import get_user_model
from django.core.management import call_command

from webapp.bus import regions
from webapp.demo.examples import make_example
from webapp.models import (
    ApiToken,
    Channel,
    DeletedQuery,
    Delivery,
    EnabledFilter,
    Event,
    Incident,
    Layer,
    LoginLink,
    Membership,
    Query,
    Space,
    Stream,
    Subscription,
    Team,
)
from webapp.queries.queries import checked_plan
from webapp.tasks import reconcile as reconciliation


def token(name: str, staff: bool) -> str:
    """Return a new token of a user, who is made where there is none."""
    user, _ = get_user_model().objects.get_or_create(username=name, defaults={"is_staff": staff, "is_superuser": staff})
    token = ApiToken(user=user, name="tests")
    secret = token.draw()
    token.save()
    return secret


def login_path(name: str) -> str:
    """Return the path of a link that logs a user in, once."""
    return f"/login/once/{LoginLink.issue(get_user_model().objects.get(username=name))}/"


def add_stream(definition: dict) -> None:
    """Save a stream as the admin does."""
    fields = {name: value for name, value in definition.items() if name not in ("transport", "decoder")}
    for part in ("transport", "decoder"):
        options = dict(definition[part])
        fields |= {part: options.pop("kind"), f"{part}_options": options}
    stream = Stream(**{"title": definition["name"], **fields})
    stream.full_clean()
    stream.save()


def enable_filter(name: str) -> None:
    """Let queries use a user-defined filter as the admin does."""
    EnabledFilter.objects.update_or_create(name=name, defaults={"enabled": True})


def enable_stream(name: str, enabled: bool) -> None:
    """Switch a stream on or off as the admin does."""
    stream = Stream.objects.get(name=name)
    stream.enabled = enabled
    stream.save()


def remove_stream(name: str) -> None:
    """Delete a stream as the admin does."""
    Stream.objects.get(name=name).delete()


def import_layer(path: str, name: str, key: str) -> None:
    """Import a file as the command does."""
    call_command("import_layer", path, name=name, key=key, stdout=io.StringIO(), stderr=io.StringIO())


def drop_layer(name: str) -> None:
    """Delete a layer as the admin does."""
    Layer.objects.get(name=name).delete()


def clear() -> None:
    """Delete all queries and streams as the admin does."""
    Query.objects.all().delete()
    Stream.objects.all().delete()


def add_space(name: str, definition: dict) -> None:
    """Save a space as the admin does."""
    space = Space(name=name, definition=definition)
    space.full_clean()
    space.save()


def remove_space(name: str) -> None:
    """Delete a space as the admin does."""
    Space.objects.get(name=name).delete()


def forget_query(number: int) -> None:
    """Delete a query as the admin does."""
    Query.objects.get(pk=number).delete()


def events(number: int) -> list[tuple]:
    """Return the recorded events of a query, the oldest first."""
    return list(Event.objects.filter(query=number).order_by("pk").values_list("sign", "key", "bounds"))


def pairs(number: int) -> list[tuple]:
    """Return the recorded pairs of a query: the key, the partner's key, and the event time in microseconds."""
    found = Event.objects.filter(query=number).values_list("key", "partner", "time")
    return [(key, partner, round(time.timestamp() * 1_000_000)) for key, partner, time in found]


def queries() -> list[dict]:
    """Return how each saved query stands."""
    return [query.document() for query in Query.objects.select_related("owner")]


def add_queries(owner: str, plan: dict, count: int) -> None:
    """Save many queries of one plan at once; a reconciliation tells the engine of them."""
    user = get_user_model().objects.get(username=owner)
    plan = checked_plan(plan)
    Query.objects.bulk_create(
        Query(owner=user, name=f"Query {i}", plan=plan, stream=plan["stream"]) for i in range(count)
    )


def add_example(name: str, plan: dict) -> int:
    """Save an example of the demonstration, and tell the engine of it; return its number."""
    query = make_example(name, plan)
    reconciliation.delay()
    return query.pk


def reconcile() -> None:
    """Have the worker tell the engine what it does not know, as it does every 30 s."""
    reconciliation.delay()


def cut_regions(name: str, count: int) -> None:
    """Cut a space into a grid of regions as the admin does."""
    space = Space.objects.get(name=name).parsed
    regions.cut(space, "grid", count, np.empty((0, space.n)), "tests")


def remove_queries(owner: str) -> None:
    """Delete all queries of a user."""
    Query.objects.filter(owner__username=owner).delete()


def ending() -> int:
    """Return how many deleted queries the engine has not ended yet."""
    return DeletedQuery.objects.count()


def subscribe_webhook(name: str, url: str) -> None:
    """Have the incidents of a user's queries sent to an address."""
    channel = Channel.objects.create(name=url, kind="webhook", options={"url": url})
    Subscription.objects.create(user=get_user_model().objects.get(username=name), channel=channel)


def sent(number: int) -> dict:
    """Return the objects of a query's incidents, the keys of the messages about them, and how many are on their way."""
    found = Delivery.objects.filter(change__incident__query=number)
    return {
        "objects": list(Incident.objects.filter(query=number).values_list("key", flat=True)),
        "keys": list(found.values_list("key", flat=True)),
        "open": found.filter(state__in=Delivery.OPEN).count(),
    }


def put_member(team: str, name: str, role: str) -> int:
    """Add a user to a team, which is made where there is none, as the admin does; return the number of the team."""
    made, _ = Team.objects.get_or_create(name=team)
    user = get_user_model().objects.get(username=name)
    Membership.objects.update_or_create(team=made, user=user, defaults={"role": role})
    return made.pk


COMMANDS = {
    "put_member": put_member,
    "token": token,
    "login_path": login_path,
    "add_stream": add_stream,
    "enable_stream": enable_stream,
    "remove_stream": remove_stream,
    "clear": clear,
    "import_layer": import_layer,
    "drop_layer": drop_layer,
    "add_space": add_space,
    "remove_space": remove_space,
    "forget_query": forget_query,
    "events": events,
    "pairs": pairs,
    "enable_filter": enable_filter,
    "queries": queries,
    "add_example": add_example,
    "add_queries": add_queries,
    "reconcile": reconcile,
    "cut_regions": cut_regions,
    "remove_queries": remove_queries,
    "ending": ending,
    "subscribe_webhook": subscribe_webhook,
    "sent": sent,
}


def serve() -> None:
    """Answer until the end of standard input (``manage.py shell`` runs this)."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"answer": COMMANDS[name](*arguments)}
        except Exception as error:
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)
