"""Versions of layers: edits of features, and the announcement of new versions."""

from typing import Any

import orjson
import pyarrow as pa
import shapely
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext

from streaming.layers import Conflict, FeatureSummary, InvalidLayer, feature_table
from streaming.layers.features import MAX_KEY_CHARACTERS
from streaming.layers.placing import placed
from streaming.spaces import Space
from webapp.bus.notify import LAYERS_GROUP, STAFF_GROUP, announce_layer, announce_layer_hidden, team_group, user_group
from webapp.bus.redis import log
from webapp.bus.telling import tell
from webapp.machine.disk import check_room
from webapp.models import Layer, RefusedImport
from webapp.models.layers import layer_store
from webapp.queries.waiting import layer_changed
from webapp.rights.access import rights_of, team_of
from webapp.words.refusals import Refused


def space_of(layer: Layer) -> Space:
    """Return the space of a layer."""
    return layer.space.parsed


def tell_engine() -> int:
    """Send the engines the version of every layer; return the number of layers. Repeating it changes nothing."""
    layers = list(Layer.objects.filter(version__isnull=False))
    for layer in layers:
        _send(layer, "layer", version=layer.version)
    return len(layers)


def _send(layer: Layer, op: str, **entry: Any) -> None:
    """Send an entry about a layer to the engine of its space."""
    log(layer.space_id).send(op, layer=layer.name, **entry)


def catch_up() -> int:
    """Use versions that were stored but not saved in the database, because the process ended; return how many."""
    return sum(_catch_up(number) for number in Layer.objects.values_list("pk", flat=True))


def _catch_up(number: int) -> bool:
    store = layer_store()
    with transaction.atomic():
        # A process that stores a version keeps the row locked until it has saved it.
        layer = Layer.objects.select_for_update().filter(pk=number).first()
        newest = store.newest(layer.name) if layer else None
        if layer is None or newest is None or newest == layer.version or layer.status == Layer.IMPORTING:
            return False
        adopted(layer, newest, store.manifest(layer.name, newest).summary)
    return True


def announce(layer: Layer, **changes: Any) -> None:
    """Announce the state of a layer to the connections of those who may see it."""
    groups = [LAYERS_GROUP]
    if layer.team_id is not None:
        groups = [team_group(layer.team_id), STAFF_GROUP, *([user_group(layer.owner_id)] if layer.owner_id else [])]
    for group in groups:
        announce_layer(group, layer.document() | changes)


def announce_refusal(refused: RefusedImport, **changes: Any) -> None:
    """Announce a refused import to the user who asked for it."""
    announce_layer(user_group(refused.owner_id), refused.document() | changes)


def adopted(layer: Layer, version: int, summary: FeatureSummary) -> None:
    """Save a layer with a stored version; after the commit, tell the engine and the connections."""
    layer.take(version, summary)
    layer.save()
    transaction.on_commit(lambda: _put_in_use(layer))


def edit_features(user: User, name: str, base_version: int, upserts: list[dict], removed: list[str]) -> int:
    """Store a new version of a layer with some features changed, added or removed; return the version.

    Parameters
    ----------
    user : User
    name : str
    base_version : int
        The version that the user edited.
    upserts : list of dict
        GeoJSON features to add or replace; the ``id`` of each is its key.
    removed : list of str
        Keys of features to remove.

    Raises
    ------
    Refused
        ``conflict`` where the base is not the newest version or the layer is being imported, ``features`` where a
        feature is not valid, ``layer`` where there is no such layer, ``owner`` where the user may not change it, and
        ``disk`` as `check_room` does.
    """
    with transaction.atomic():
        layer = changeable(user, name)
        if layer.status == Layer.IMPORTING or layer.version is None:
            raise Refused(
                "conflict",
                gettext("a layer can be edited once it is imported; %(name)s is %(status)s")
                % {"name": f"{name!r}", "status": layer.status},
            )
        check_room(settings.LAYERS_DIR)
        store, space = layer_store(), space_of(layer)
        table = features_of(name, upserts, space)
        try:
            version = store.edit(name, base_version, table, removed, space)
        except Conflict as conflict:
            raise Refused("conflict", str(conflict)) from None
        except InvalidLayer as error:
            raise Refused("features", str(error)) from None
        adopted(layer, version, store.manifest(name, version).summary)
    return version


def features_of(layer: str, documents: list[dict], space: Space) -> pa.Table:
    """Return GeoJSON features as a table of a layer's features, repaired like those of an imported file.

    Raises
    ------
    Refused
        ``features`` where one is not a valid feature, or its geometry does not lie in the space.
    """
    keys = [_key(document) for document in documents]
    read = placed([_geometry(document, key) for document, key in zip(documents, keys, strict=True)], space)
    for row, note in read.notes.items():
        if read.geometries[row] is None:
            raise Refused(
                "features",
                gettext("feature %(keys)s must have a geometry in the space; %(note)s")
                % {"keys": f"{keys[row]!r}", "note": note},
            )
    try:
        return feature_table(layer, keys, read.geometries, [d.get("properties") for d in documents], space=space)
    except InvalidLayer as error:
        raise Refused("features", str(error)) from None


def share_layer(user: User, name: str, team: int | None) -> Layer:
    """Show a layer to a team only, or to everybody (None); return the layer.

    Raises
    ------
    Refused
        ``layer`` and ``owner`` as `changeable` does, ``team`` where the user may not give it to that team.
    """
    rights = rights_of(user)
    with transaction.atomic():
        layer = changeable(user, name)
        if layer.team_id == team:
            return layer
        if not rights.shares_layer(layer):
            raise Refused(
                "owner",
                gettext("only its owner or an admin of its team may choose who sees a layer; got %(name)s")
                % {"name": f"{name!r}"},
            )
        former, layer.team = layer.team_id, team_of(rights, team)
        layer.save(update_fields=["team", "updated"])
        transaction.on_commit(lambda: _shared_anew(layer, former))
    return layer


def draw_layer_as(user: User, name: str, look: int | None) -> Layer:
    """Have a layer drawn in another look, for everybody; return the layer.

    Raises
    ------
    Refused
        ``layer`` and ``owner`` as `changeable` does.
    """
    with transaction.atomic():
        layer = changeable(user, name)
        layer.look = look
        layer.save(update_fields=["look", "updated"])
        transaction.on_commit(lambda: announce(layer))
    return layer


def _shared_anew(layer: Layer, former: int | None) -> None:
    """Announce who sees a layer; joins of those who do not see it any more wait from now on."""
    layer_changed(layer.name)
    announce(layer)
    if layer.team_id is not None:
        announce_layer_hidden(LAYERS_GROUP if former is None else team_group(former), layer)


def changeable(user: User, name: str) -> Layer:
    """Return a layer that a user may change, locked until the transaction ends.

    Raises
    ------
    Refused
        ``layer`` where there is none of this name, ``owner`` where the user may not change it.
    """
    layer = Layer.objects.select_for_update().filter(name=name).first()
    if layer is None or not rights_of(user).sees_layer(layer.owner_id, layer.team_id):
        raise Refused("layer", gettext("layer must be the name of a layer; got %(name)s") % {"name": f"{name!r}"})
    check_editable(user, layer)
    return layer


def check_editable(user: User, layer: Layer) -> None:
    """Raise Refused unless a user may change a layer."""
    if not rights_of(user).edits_layer(layer):
        rule = gettext("only its owner, an analyst of its team, or staff, may change a layer")
        raise Refused(
            "owner", gettext("%(rule)s; %(name)s is somebody else's") % {"rule": rule, "name": f"{layer.name!r}"}
        )


def _put_in_use(layer: Layer) -> None:
    """Tell the engine to use a layer's version, discard versions that nothing reads any more, announce the change."""
    tell(f"the layer {layer.name}", lambda: _send(layer, "layer", version=layer.version))
    layer_store().discard(layer.name, settings.LAYER_VERSIONS_KEPT, settings.LAYER_VERSION_LIFE_S)
    announce(layer)
    layer_changed(layer.name)


@receiver(post_delete, sender=Layer)
def _deleted(instance: Layer, **_: object) -> None:
    transaction.on_commit(lambda: _drop(instance))


def _drop(layer: Layer) -> None:
    tell(f"the layer {layer.name}", lambda: _send(layer, "drop_layer"))
    layer_store().drop(layer.name)
    announce(layer, status="deleted")
    layer_changed(layer.name)


def _key(document: Any) -> str:
    key = document.get("id") if isinstance(document, dict) and document.get("type") == "Feature" else None
    if isinstance(key, int) and not isinstance(key, bool):
        key = str(key)
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY_CHARACTERS:
        rule = gettext("upsert must hold GeoJSON features with an id of 1 to %(max_key_characters)s characters") % {
            "max_key_characters": MAX_KEY_CHARACTERS
        }
        raise Refused(
            "features", gettext("%(rule)s; got %(document)s") % {"rule": rule, "document": f"{document!r:.120}"}
        )
    if not isinstance(document.get("properties") or {}, dict):
        raise Refused(
            "features",
            gettext("the properties of feature %(key)s must be an object; got %(document)s")
            % {"key": f"{key!r}", "document": f"{document['properties']!r:.80}"},
        )
    return key


def _geometry(document: dict[str, Any], key: str) -> shapely.Geometry:
    try:
        return shapely.from_geojson(orjson.dumps(document.get("geometry")))
    except shapely.errors.GEOSException as error:
        raise Refused(
            "features",
            gettext("the geometry of feature %(key)s must be one of GeoJSON; got: %(error)s")
            % {"key": f"{key!r}", "error": error},
        ) from None
