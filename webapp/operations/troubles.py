"""What an operator should look at now, each with its place and its words."""

from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext

from webapp.delivery.undelivered import undelivered
from webapp.models import Query
from webapp.models.queries import TRIED_WITHIN
from webapp.queries.query_warnings import left_out_words, warning_words

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
    left_out = Q(left_out_until__gt=timezone.now() - TRIED_WITHIN, status=Query.RUNNING)
    told = seen.filter(~Q(warning="") | ~Q(warnings={}) | ~Q(error="") | left_out).order_by("-pk")
    for query in told[:MOST_QUERIES]:
        where = gettext("query %(number)s, %(name)s") % {"number": query.pk, "name": query.name}
        words = query.error or left_out_words(query) or warning_words(query)
        found.append(_trouble("bad" if query.error else "warn", where, words))
    return found


def _trouble(level: str, where: str, words: str) -> dict[str, str]:
    return {"level": level, "where": where, "words": words}
