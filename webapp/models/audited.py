"""Query sets whose statements for many rows are recorded in the audit log, as saves and deletions of one row are."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from django.db import models, transaction


@dataclass(frozen=True)
class Recorder:
    """Records statements for many rows. Models do not know the audit log, which knows all of them.

    Parameters
    ----------
    fields_among : callable
        Return those fields of a model whose changes are recorded, among the values that a statement sets.
    changed : callable
        Record how fields of rows of a model changed, given the rows as they were.
    created : callable
        Record rows that were added.
    """

    fields_among: Callable[[type[models.Model], dict[str, Any]], list[str]]
    changed: Callable[[type[models.Model], list[models.Model], list[str]], None]
    created: Callable[[Iterable[models.Model]], None]


class AuditedQuerySet(models.QuerySet):
    """A query set of a model that `webapp.audit.registry` declares. Methods of a single row send signals instead.

    Attributes
    ----------
    recorder : Recorder
        Set by `webapp.audit.recording.watch` once all models are loaded. Without it, a statement fails rather than
        goes unrecorded.
    """

    recorder: ClassVar[Recorder]

    def update(self, **values: Any) -> int:
        """Change rows by one statement; record the old and the new values of the audited fields."""
        fields = self.recorder.fields_among(self.model, values)
        if not fields:
            return super().update(**values)
        with transaction.atomic():
            before = list(self.select_for_update(of=("self",)).order_by("pk"))
            changed = super().update(**values)
            self.recorder.changed(self.model, before, fields)
        return changed

    update.alters_data = True  # type: ignore[attr-defined]  # the mark by which templates may not call it

    def bulk_create(self, objs: Iterable[Any], *arguments: Any, **options: Any) -> list[Any]:
        """Insert rows by one statement; record each."""
        with transaction.atomic():
            made = super().bulk_create(objs, *arguments, **options)
            self.recorder.created(made)
        return made

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Change rows by one statement; the method `update` records them."""
        objs = tuple(objs)
        return super().bulk_update(objs, fields, batch_size)
