"""Layers: the stored tables with which streams are joined, and the state of their imports."""

import uuid
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from streaming.layers import FeatureSummary, LayerStore
from webapp.models.audited import AuditedQuerySet
from webapp.models.looks import LAYER_LOOKS, look_field
from webapp.models.spaces import Space
from webapp.models.streams import NAME_RULE


def layer_store() -> LayerStore:
    """Return the store of the versions of layers on disk."""
    return LayerStore(settings.LAYERS_DIR)


class Layer(models.Model):
    """A layer; its features are in the files of its newest version (`streaming.layers.store`).

    `version` is the version in use, whatever the result of the last import; it is null during the first import only.
    `run` identifies the import that may change this row, while the status is importing; a replaced import has another
    value. `importer` is the user who asked for the import, `next_title` the title that the layer gets with the imported
    version. `heartbeat` is the time of the import's last sign of life; it is null while the import waits for its turn.
    """

    IMPORTING, READY, FAILED, CANCELLED = "importing", "ready", "failed", "cancelled"
    STATUSES = [(status, status) for status in (IMPORTING, READY, FAILED, CANCELLED)]

    name = models.SlugField(
        _("name"), max_length=40, unique=True, validators=[NAME_RULE], help_text=_("Fixed once saved.")
    )
    title = models.CharField(_("title"), max_length=80, blank=True)
    space = models.ForeignKey(Space, models.PROTECT, related_name="layers", verbose_name=_("space"))
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="layers", verbose_name=_("owner")
    )
    team = models.ForeignKey(
        "webapp.Team",
        models.PROTECT,  # everybody would see it
        null=True,
        blank=True,
        related_name="layers",
        verbose_name=_("team"),
        help_text=_("Only its members see it, and its analysts change it. Empty: everybody sees it."),
    )
    version = models.PositiveBigIntegerField(_("version"), null=True, editable=False)
    features = models.PositiveBigIntegerField(_("features"), default=0, editable=False)
    bounds = models.JSONField(_("bounds"), null=True, editable=False)
    geometry_types = models.JSONField(_("geometry types"), default=list, editable=False)
    status = models.CharField(_("status"), max_length=10, choices=STATUSES, default=IMPORTING, db_index=True)
    progress = models.FloatField(_("progress"), default=0.0, editable=False)
    error = models.TextField(_("error"), blank=True)
    problems = models.JSONField(_("problems"), default=list, editable=False)
    problem_count = models.PositiveBigIntegerField(_("problems"), default=0, editable=False)
    importer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="imports", editable=False
    )
    next_title = models.CharField(max_length=80, blank=True, editable=False)
    run = models.UUIDField(default=uuid.uuid4, editable=False)
    heartbeat = models.DateTimeField(null=True, editable=False)
    look = look_field(LAYER_LOOKS)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    updated = models.DateTimeField(_("updated"), auto_now=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("layer")
        verbose_name_plural = _("layers")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.title or self.name

    def take(self, version: int, summary: FeatureSummary) -> None:
        """Set the fields for a new version. Nothing is saved."""
        self.version, self.features = version, summary.features
        self.geometry_types = list(summary.geometry_types)
        n = len(summary.bounds) // 2
        sides = (0, min(1, n - 1), n, n + min(1, n - 1))
        self.bounds = [summary.bounds[side] for side in sides] if summary.features else None

    def rows_told(self) -> list[dict]:
        """Return the problems of rows, without what was told of the file as a whole."""
        return [problem for problem in self.problems if problem["row"] is not None]

    def document(self) -> dict:
        """Return the description of this layer for clients."""
        return {
            "name": self.name,
            "title": str(self),
            "version": self.version,
            "status": self.status,
            "progress": round(self.progress, 3),
            "error": self.error or None,
            "problems": self.problems,
            "problem_count": self.problem_count,
            "features": self.features,
            "bounds": self.bounds,
            "geometry_types": self.geometry_types,
            "stream_space": self.space_id,
            "team": self.team_id,
            "look": (self.pk or 0) % LAYER_LOOKS if self.look is None else self.look,
            "owner": self.owner.get_username() if self.owner else None,
        }


class RefusedImport(models.Model):
    """The reason why the first import of a layer was refused; the layer itself does not exist."""

    KEPT = timedelta(days=7)
    MOST_OF_A_USER = 100

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="refused_imports", verbose_name=_("owner")
    )
    name = models.SlugField(_("name"), max_length=40)
    title = models.CharField(_("title"), max_length=80, blank=True)
    space = models.CharField(_("space"), max_length=40)
    reason = models.TextField(_("reason"))
    refused = models.DateTimeField(_("refused"), default=timezone.now)

    class Meta:
        verbose_name = _("refused import")
        verbose_name_plural = _("refused imports")
        ordering = ["-refused"]
        constraints = [models.UniqueConstraint(fields=["owner", "name"], name="one_refusal_of_a_name")]

    def __str__(self) -> str:
        return self.title or self.name

    @classmethod
    def keep(cls, layer: Layer, reason: str) -> "RefusedImport | None":
        """Save why a layer's first import was refused, for the user who asked; None for a command, which prints it."""
        if layer.importer_id is None:
            return None
        words = {"title": layer.title, "space": layer.space_id, "reason": reason, "refused": timezone.now()}
        kept, _ = cls.objects.update_or_create(owner_id=layer.importer_id, name=layer.name, defaults=words)
        older = cls.objects.filter(owner_id=layer.importer_id).values_list("pk", flat=True)[cls.MOST_OF_A_USER :]
        cls.objects.filter(pk__in=list(older)).delete()
        return kept

    @classmethod
    def of(cls, user: User) -> "list[RefusedImport]":
        """Return a user's refused imports, without those whose name a layer has now."""
        return list(cls.objects.filter(owner=user).exclude(name__in=Layer.objects.values("name")))

    def document(self) -> dict:
        """Return the description for the owner's clients: a failed layer without a version."""
        failed = Layer(name=self.name, title=self.title, space_id=self.space, status=Layer.FAILED, error=self.reason)
        return failed.document()
