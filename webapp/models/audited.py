"""Query sets whose statements for many rows are recorded in the audit log, as saves and deletions of one row are."""

from collections.abc import Iterable
from typing import Any

from django.db import models, transaction


class AuditedQuerySet(models.QuerySet):
    """A query set of a model that `webapp.audit.registry` declares. Methods of a single row send signals instead."""

    def update(self, **values: Any) -> int:
        """Change rows by one statement; record the old and the new values of the audited fields."""
        from webapp.audit.recording import record_rows, watched_among  # late: the registry loads all models

        fields = watched_among(self.model, values)
        if not fields:
            return super().update(**values)
        with transaction.atomic():
            before = list(self.select_for_update(of=("self",)).order_by("pk"))
            changed = super().update(**values)
            record_rows(self.model, before, fields)
        return changed

    update.alters_data = True  # type: ignore[attr-defined]  # the mark by which templates may not call it

    def bulk_create(self, objs: Iterable[Any], *arguments: Any, **options: Any) -> list[Any]:
        """Insert rows by one statement; record each."""
        from webapp.audit.recording import record_created

        with transaction.atomic():
            made = super().bulk_create(objs, *arguments, **options)
            record_created(made)
        return made

    def bulk_update(self, objs: Iterable[Any], fields: Iterable[str], batch_size: int | None = None) -> int:
        """Change rows by one statement; the method `update` records them."""
        objs = tuple(objs)
        return super().bulk_update(objs, fields, batch_size)
