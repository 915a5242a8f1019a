"""Joins whose layer does not exist: they wait with the status waiting, and start when the layer is imported."""

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q

from webapp.access import NOTHING, Rights, rights_of_users
from webapp.incidents import close_of
from webapp.models import Layer, Query
from webapp.models.queries import LAYER_KEYS
from webapp.notify import announce
from webapp.sending import send_query
from webapp.telling import tell_task


def stand(query: Query) -> None:
    """Set the first status of a new or changed query: paused, pending or waiting. Nothing is saved."""
    query.error = query.warning = ""
    query.status = Query.PAUSED if query.paused else Query.PENDING
    if query.layer and not query.paused and not there([query]):
        query.wait_for(query.layer)


def there(queries: Iterable[Query]) -> set[int | None]:
    """Return the numbers of those joins whose layer has a version in the join's space, and may be joined."""
    queries = list(queries)
    known = Layer.objects.filter(version__isnull=False, name__in={query.layer for query in queries})
    layers = {(layer.space_id, layer.name): layer for layer in known}
    pairs = [(query, layers.get((query.space_id, query.layer))) for query in queries]
    named = {query.owner_id for query, layer in pairs if layer is not None and layer.team_id is not None}
    owners = {owner for owner in named if owner is not None}
    rights = rights_of_users(owners) if owners else {}
    return {query.pk for query, layer in pairs if layer is not None and _may_join(query, layer, rights)}


def _may_join(query: Query, layer: Layer, rights: Mapping[int, Rights]) -> bool:
    """Return whether a query belongs to the team of a layer, or to somebody who may see the layer."""
    if layer.team_id is None or layer.team_id == query.team_id:
        return True
    its = NOTHING if query.owner_id is None else rights.get(query.owner_id, NOTHING)
    return its.sees_layer(layer.owner_id, layer.team_id)


def follow_layers(name: str = "") -> list[Query]:
    """Set joins whose layer is gone to waiting, and start those whose layer has come.

    Parameters
    ----------
    name : str
        Name of the layer that changed; empty for all layers.

    Returns
    -------
    list of Query
        The changed queries. They are saved and announced; the caller must still tell the engine.
    """
    with transaction.atomic():
        rule = {"": name} if name else {"__isnull": False}
        named = (Q(**{f"plan__{key}__layer{look}": value}) for key in LAYER_KEYS for look, value in rule.items())
        found = Query.objects.alive().filter(paused=False).filter(reduce(or_, named))
        joins = list(found.select_for_update(of=("self",)).select_related("owner").order_by("pk"))
        present = there(joins)
        changed = [query for query in joins if (query.pk in present) == (query.status == Query.WAITING)]
        for query in changed:
            stand(query)
            query.revision += 1
            query.save()
        close_of([query for query in changed if query.status == Query.WAITING], "the query waits for its layer")
    announce(changed)
    return changed


def layer_changed(name: str) -> None:
    """Let the joins with a layer wait or start, and send tasks that tell the engine; reconciliations do so, too."""
    for query in follow_layers(name):
        tell_task(send_query, query.pk)
