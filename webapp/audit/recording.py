"""Record changes of the watched models in the audit log, in the transaction of each change."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, cast

from django.db import models, transaction
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete, pre_save

from webapp.audit.joining import Edit, keep
from webapp.audit.origin import origin
from webapp.audit.registry import WATCHED, RecordedFields
from webapp.machine.logs import HIDDEN, without_secrets
from webapp.models import AuditEntry, Query, Team
from webapp.models.audit_values import Pair, recorded
from webapp.models.audited import AuditedQuerySet, Recorder

# Options with these names hold secrets; all values of a mapping that is named so are hidden.
SECRET_OPTION = re.compile(r"(?i)pass|secret|token|authori[sz]ation|api.?key|cookie|credential|headers")
_BEFORE = "_audit_before"


def watch() -> None:
    """Record the changes of all watched models from now on."""
    AuditedQuerySet.recorder = Recorder(watched_among, record_rows, record_created)
    for model, watched in WATCHED.items():
        # The row and its entry are written together also where the caller has no transaction.
        model.save = _together(model.save)  # type: ignore[method-assign]
        pre_save.connect(_saving, sender=model, dispatch_uid=f"audit {watched.kind} saving")
        post_save.connect(_saved, sender=model, dispatch_uid=f"audit {watched.kind} saved")
        pre_delete.connect(_deleting, sender=model, dispatch_uid=f"audit {watched.kind} deleting")
        post_delete.connect(_deleted, sender=model, dispatch_uid=f"audit {watched.kind} deleted")
        for name in watched.many:
            through = cast("models.ManyToManyField[Any, Any]", model._meta.get_field(name)).remote_field.through
            m2m_changed.connect(_related(model, name), sender=through, weak=False, dispatch_uid=f"audit {model} {name}")


def _together(save: Callable[..., None]) -> Callable[..., None]:
    return save if hasattr(save, "audited") else _marked(transaction.atomic(savepoint=False)(save))


def _marked(save: Callable[..., None]) -> Callable[..., None]:
    save.audited = True  # type: ignore[attr-defined]  # the mark that `_together` looks for
    return save


def watched_among(model: type[models.Model], values: dict[str, Any]) -> list[str]:
    """Return those fields of a model whose changes are recorded, among those that a statement sets.

    The property that says whether an object has ended is among them if the statement ends objects.
    """
    watched = WATCHED[model]
    names = {model._meta.get_field(name).name for name in values}
    if watched.ended and values.get("status") == Query.CANCELLED:
        names.add(watched.ended)
    return [name for name in watched.recorded if name in names]


def record_rows(model: type[models.Model], before: list[models.Model], fields: list[str]) -> None:
    """Record how fields of rows changed by a statement, given the rows as they were."""
    now = model._base_manager.in_bulk([row.pk for row in before])
    edits = [_changed(row, now[row.pk], fields) for row in before if row.pk in now]
    keep([edit for edit in edits if edit is not None])


def record_created(made: Iterable[models.Model]) -> None:
    """Record objects that were added."""
    AuditEntry.objects.bulk_create([_created(instance) for instance in made])


def _saving(
    sender: type[models.Model], instance: models.Model, update_fields: Collection[str] | None = None, **_: object
) -> None:
    """Keep the row as it is before it is saved."""
    recorded = WATCHED[sender].recorded
    saved = None if update_fields is None else {*update_fields} | ({"ended"} if "status" in update_fields else set())
    fields = [name for name in recorded if saved is None or name in saved]
    row = None
    if fields and instance.pk is not None:
        row = sender._base_manager.select_for_update(of=("self",)).filter(pk=instance.pk).first()
    instance.__dict__[_BEFORE] = row, fields


def _saved(sender: type[models.Model], instance: models.Model, created: bool, **_: object) -> None:
    before, fields = instance.__dict__.pop(_BEFORE)
    if created:
        _created(instance).save()
    elif before is not None and (edit := _changed(before, instance, fields)) is not None:
        keep([edit])


def _deleting(sender: type[models.Model], instance: models.Model, **_: object) -> None:
    """Record a deletion. What loses its reference to the object by it is recorded by `AuditedQuerySet.update`."""
    watched = WATCHED[sender]
    values = {name: [_shown(watched, instance, name), None] for name in watched.fields}
    _entry(AuditEntry.DELETED, instance, {name: pair for name, pair in values.items() if pair[0] is not None}).save()


def _deleted(sender: type[models.Model], instance: models.Model, **_: object) -> None:
    instance.__dict__.pop(_BEFORE, None)


def _related(model: type[models.Model], name: str) -> Callable[..., None]:
    """Return the receiver of changes of a relation to many objects."""

    def receive(
        instance: models.Model, action: str, reverse: bool, pk_set: set[Any] | None, model: object = None, **_: object
    ) -> None:
        if action not in ("post_add", "post_remove", "pre_clear"):
            return
        owners: Iterable[models.Model] = [instance]
        others = pk_set
        if reverse:
            known = watched_model._base_manager
            owners = known.filter(pk__in=pk_set) if pk_set is not None else known.filter(**{name: instance})
            others = {instance.pk}
        for owner in owners:
            named = others if others is not None else set(getattr(owner, name).values_list("pk", flat=True))
            words = _names(cast("type[models.Model]", watched_model._meta.get_field(name).related_model), named)
            if words:
                pair = [None, words] if action == "post_add" else [words, None]
                _entry(AuditEntry.CHANGED, owner, {name: pair}).save()

    watched_model = model
    return receive


def _names(model: type[models.Model], keys: Collection[Any]) -> list[str]:
    return [str(row) for row in model._base_manager.filter(pk__in=keys).order_by("pk")]


def _created(instance: models.Model) -> AuditEntry:
    watched = WATCHED[type(instance)]
    values = {name: [None, _shown(watched, instance, name)] for name in (*watched.fields, *watched.secrets)}
    return _entry(AuditEntry.CREATED, instance, {name: pair for name, pair in values.items() if pair[1] is not None})


def _changed(before: Any, now: Any, fields: Collection[str]) -> Edit | None:
    """Return the entry of a change; None if no field differs."""
    watched = WATCHED[type(now)]
    if watched.ended in fields and getattr(now, watched.ended) and not getattr(before, watched.ended):
        return Edit(_entry(AuditEntry.DELETED, now, {}), {}, joins=False)
    attributes = {name: _field(now, name).attname for name in fields if name != watched.ended}
    differ = [name for name, key in attributes.items() if getattr(before, key) != _clean(now, name, key)]
    changes = {name: [_shown(watched, before, name), _shown(watched, now, name)] for name in differ}
    if not changes:
        return None
    former = before.team if "team" in changes else None
    entry = _entry(AuditEntry.CHANGED, now, changes, former)
    return Edit(entry, changes, joins=changes.keys() <= set(watched.repeatable))


def _field(instance: models.Model, name: str) -> "models.Field[Any, Any]":
    """Return a field of a model that has a column."""
    return cast("models.Field[Any, Any]", instance._meta.get_field(name))


def _clean(instance: models.Model, name: str, key: str) -> Any:
    """Return a value as the database would give it back; what a form or a caller set may have another type."""
    field, value = _field(instance, name), getattr(instance, key)
    target = field.target_field if isinstance(field, models.ForeignKey) else field
    return target.to_python(value) if value is not None else None


def _entry(action: str, instance: Any, changes: dict[str, Pair], former: Team | None = None) -> AuditEntry:
    now, kind = origin(), WATCHED[type(instance)].kind
    team: Team | None = instance if isinstance(instance, Team) else getattr(instance, "team", None)
    user = now.user if now.user is not None and now.user.pk is not None else None
    named = team or former
    return AuditEntry(
        user_number=None if user is None else user.pk,
        user_name=now.name,
        way=now.way,
        address=now.address,
        action=action,
        kind=kind,
        key=str(instance.pk)[:64],
        name=_name(instance)[:200],
        team=None if team is None else team.pk,
        team_name="" if named is None else named.name,
        former_team=None if former is None else former.pk,
        changes=recorded(changes),
    )


def _name(instance: models.Model) -> str:
    return instance.name if isinstance(instance, Query) else without_secrets(str(instance))


def _shown(watched: RecordedFields, instance: Any, name: str) -> Any:
    """Return the value of a field for the log: JSON without secrets."""
    if name in watched.secrets:
        return HIDDEN if getattr(instance, name) else None
    field = instance._meta.get_field(name)
    if field.is_relation:
        related = getattr(instance, name)
        return None if related is None else str(related)
    value = getattr(instance, field.attname)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return without_secret_options(value)


def without_secret_options(value: Any) -> Any:
    """Return JSON with its secrets hidden: values under telling names, passwords and query strings of URLs.

    Examples
    --------
    >>> without_secret_options({"url": "http://a/?key=b", "headers": {"X-Key": "c"}, "password": "d", "n": 1})
    {'url': 'http://a/?…', 'headers': {'X-Key': '…'}, 'password': '…', 'n': 1}
    """
    if isinstance(value, dict):
        return {
            key: _hidden(one) if SECRET_OPTION.search(str(key)) else without_secret_options(one)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [without_secret_options(one) for one in value]
    return without_secrets(value) if isinstance(value, str) else value


def _hidden(value: Any) -> Any:
    if isinstance(value, dict):
        return dict.fromkeys(value, HIDDEN)
    return value if value in (None, "", True, False) else HIDDEN
