"""User-defined filters: which installed filters queries may use."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from streaming.udf import BUILT_IN, filter_names
from webapp.models.audited import AuditedQuerySet


class EnabledFilter(models.Model):
    """Whether a user-defined filter is enabled. A filter without a row is enabled if it is built in."""

    name = models.CharField(_("name"), max_length=200, unique=True)
    enabled = models.BooleanField(_("enabled"), default=False, help_text=_("Queries may use it."))

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name_plural = _("filters")
        base_manager_name = "objects"
        ordering = ["name"]
        verbose_name = _("filter")

    def __str__(self) -> str:
        return self.name

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the filters that are installed and enabled."""
        switches = dict(cls.objects.values_list("name", "enabled"))
        return [name for name in filter_names() if switches.get(name, name in BUILT_IN)]

    @classmethod
    def list_installed(cls) -> None:
        """Add a row for every installed filter that has none."""
        known = set(cls.objects.values_list("name", flat=True))
        rows = [cls(name=name, enabled=name in BUILT_IN) for name in filter_names() if name not in known]
        cls.objects.bulk_create(rows, ignore_conflicts=True)
