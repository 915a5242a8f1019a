"""Queries that wait, with the status waiting, for what they name: joins for a layer, rules for queries that they watch.

They wait while it is not there, or while their owner may not see it, and start as soon as they may read it.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext, gettext_noop

from webapp.alarms.incidents import close_of
from webapp.alarms.rules import rules_about, watched_by
from webapp.bus.notify import announce
from webapp.bus.sending import send_query
from webapp.bus.telling import tell_task
from webapp.models import Layer, Query
from webapp.models.queries import LAYER_KEYS
from webapp.rights.access import NOTHING, Rights, reads, rights_of_users
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold

# The text is the same whether the layer is hidden or is not there: nobody learns of a layer that they may not see.
NO_LAYER = gettext_noop("waits for the layer %(layer)s, which is not there; it starts once the layer is imported")
HIDDEN = gettext_noop("waits for query %(number)s, which its owner may not see; it starts once the owner may")
# Queries that name a layer, and those that watch queries.
JOINS = reduce(or_, (Q(**{f"plan__{key}__layer__isnull": False}) for key in LAYER_KEYS))
RULES = Q(plan__kind="rule")


def stand(query: Query) -> None:
    """Set the first status of a new or changed query: paused, pending or waiting. Nothing is saved."""
    query.begin()
    if not query.paused and (reason := unread([query]).get(query.pk)):
        query.wait(reason)


def unread(queries: Iterable[Query], asker: Rights | None = None) -> dict[int | None, str]:
    """Say by their numbers which of some queries may not read what they name now, and what that is.

    Parameters
    ----------
    queries : iterable of Query
    asker : Rights, optional
        Of somebody for whom they are evaluated anew; see `webapp.rights.access.reads`.
    """
    queries = list(queries)
    watched = {query.pk: watched_by(query.plan) for query in queries}
    known = Query.objects.alive().in_bulk(set().union(*watched.values())) if any(watched.values()) else {}
    layers = layers_of(queries)
    owners = {query.owner_id for query in queries if query.owner_id is not None} if known or layers else set()
    rights = rights_of_users(owners) if owners else {}
    found: dict[int | None, str] = {}
    for query in queries:
        its = NOTHING if query.owner_id is None else rights.get(query.owner_id, NOTHING)
        layer = layers.get((query.space_id, query.layer))
        if query.layer and not (layer and reads(query, layer, its, asker)):
            found[query.pk] = NO_LAYER % {"layer": repr(query.layer)}
        elif hidden := _hidden(query, watched[query.pk], known, its, asker):
            found[query.pk] = HIDDEN % {"number": hidden}
    return found


def check_readable(queries: Collection[Query], asker: Rights) -> None:
    """Raise Refused unless queries may read what they name, evaluated anew for somebody."""
    waits = unread(queries)
    for number in unread(queries, asker):
        rule = gettext("what a query reads must be there for whoever asks; query %(number)s reads what you may not see")
        raise Refused("query", retold(waits[number]) if number in waits else rule % {"number": number})


def layers_of(queries: Collection[Query]) -> dict[tuple[str | None, str], Layer]:
    """Return the layers of which queries have the names and that have a version, by space and name."""
    names = {query.layer for query in queries} - {""}
    found = Layer.objects.filter(version__isnull=False, name__in=names) if names else ()
    return {(layer.space_id, layer.name): layer for layer in found}


def versions_of(queries: Collection[Query]) -> dict[str, int]:
    """Return the versions of the layers that queries read, which must be those that `unread` does not name, by name."""
    return {layer.name: layer.version for layer in layers_of(queries).values() if layer.version is not None}


def _hidden(
    query: Query, watched: Collection[int], known: Mapping[int, Query], owner: Rights, asker: Rights | None
) -> int | None:
    """Return the first query that a rule watches and may not read; those that have ended tell nothing any more."""
    there = (known[number] for number in sorted(watched) if number in known)
    return next((one.pk for one in there if not reads(query, one, owner, asker)), None)


def follow(which: Q = JOINS | RULES) -> list[Query]:
    """Set queries that may no longer read what they name to waiting, and start those that may read it now.

    Parameters
    ----------
    which : Q
        Among which queries.

    Returns
    -------
    list of Query
        The changed queries. They are saved and announced; the caller must still tell the engine.
    """
    with transaction.atomic():
        found = Query.objects.alive().filter(JOINS | RULES, which, paused=False)
        queries = list(found.select_for_update(of=("self",)).select_related("owner").order_by("pk"))
        waits = unread(queries)
        changed = [query for query in queries if (query.pk in waits) != (query.status == Query.WAITING)]
        for query in changed:
            stand(query)
            query.revision += 1
            query.save()
        waiting = [query for query in changed if query.status == Query.WAITING]
        close_of([query for query in waiting if query.layer], "the query waits for its layer")
        close_of([query for query in waiting if not query.layer], "the rule waits for a query that it watches")
    announce(changed)
    return changed


def follow_now(which: Q = JOINS | RULES) -> None:
    """Let queries wait or start, and send tasks that tell the engine; reconciliations do so, too."""
    for query in follow(which):
        tell_task(send_query, query.pk)


def layer_changed(name: str) -> None:
    """Let the joins with a layer wait or start."""
    follow_now(reduce(or_, (Q(**{f"plan__{key}__layer": name}) for key in LAYER_KEYS)))


def sight_changed(query: Query) -> None:
    """Let the rules about a query wait or start once others see it than before."""
    if rules := rules_about(query):
        follow_now(Q(pk__in=[rule.pk for rule in rules]))


def rights_changed(user_id: int) -> None:
    """Let the queries of a user wait or start once the user's rights changed."""
    follow_now(Q(owner=user_id))
