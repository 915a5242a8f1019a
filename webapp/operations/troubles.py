"""What an operator should look at now, each with its place and its words."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext

from webapp.delivery.undelivered import undelivered
from webapp.models import Query

MOST_QUERIES = 20


def troubles(figures: dict[str, Any], seen: QuerySet[Query]) -> list[dict[str, str]]:
    """Return what is wrong: with parts, states of engines, streams, alarms that reach nobody, and queries.

    Of the queries, the newest that the user sees are told, at most `MOST_QUERIES`.
    """
    found = [_trouble("bad", part, words) for part, words in figures["reasons"].items()]
    for name, space in figures["spaces"].items():
        if space["problem"]:
            found.append(_trouble("bad", gettext("state of %(name)s") % {"name": name}, space["problem"]))
    for name, stream in figures["streams"].items():
        if stream["error"] or stream["hint"]:
            level = "bad" if stream["state"] == "failed" else "warn"
            found.append(
                _trouble(level, gettext("stream %(name)s") % {"name": name}, stream["error"] or stream["hint"])
            )
    found += [_trouble(*told) for told in undelivered()]
    told = seen.filter(~Q(warning="") | ~Q(error="")).order_by("-pk")[:MOST_QUERIES]
    for number, name, error, warning in told.values_list("pk", "name", "error", "warning"):
        found.append(
            _trouble(
                "bad" if error else "warn",
                gettext("query %(number)s, %(name)s") % {"number": number, "name": name},
                error or warning,
            )
        )
    return found


def _trouble(level: str, where: str, words: str) -> dict[str, str]:
    return {"level": level, "where": where, "words": words}
