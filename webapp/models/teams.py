"""Teams, their members, saved views of the map, and links that show a part of it to people without a login."""

import secrets

from django.conf import settings
from django.core.validators import MaxLengthValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.models.audited import AuditedQuerySet
from webapp.models.queries import Query
from webapp.models.tokens import hashed

MAX_ADDRESS_CHARACTERS = 4_000
# Queries that one link may show.
MOST_SHOWN = 100


class Role(models.TextChoices):
    """What a member may do in a team; each role may do what those before it may."""

    VIEWER = "viewer", _("viewer: sees what the team has")
    ANALYST = "analyst", _("analyst: also creates and edits it, and acts on incidents")
    ADMIN = "admin", _("admin: also manages members, share links, channels and subscriptions")

    @classmethod
    def at_least(cls, role: str) -> list[str]:
        """Return the roles that may do what a role may."""
        return cls.values[cls.values.index(role) :]


class Team(models.Model):
    """A group of users who share queries, layers, rules and views."""

    name = models.CharField(_("name"), max_length=80, unique=True)
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's place in a team."""

    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships", verbose_name=_("team"))
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=10, choices=Role, default=Role.VIEWER)
    created = models.DateTimeField(_("since"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        base_manager_name = "objects"
        ordering = ["team", "user__username"]
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_membership_of_a_user_in_a_team")]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"


class SavedView(models.Model):
    """A view of the map that somebody saved: its address, and which queries and layers it shows.

    The address is the part of the page's URL after ``#``; only the page reads it.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_views", verbose_name=_("owner")
    )
    team = models.ForeignKey(
        Team, models.SET_NULL, null=True, blank=True, related_name="saved_views", verbose_name=_("team")
    )
    name = models.CharField(_("name"), max_length=120)
    address = models.TextField(_("address"), validators=[MaxLengthValidator(MAX_ADDRESS_CHARACTERS)])
    queries = models.JSONField(_("queries"), default=list, help_text=_("Numbers of the queries that it shows."))
    layers = models.JSONField(_("layers"), default=list, help_text=_("Names of the layers that it shows."))
    created = models.DateTimeField(_("created"), auto_now_add=True)
    updated = models.DateTimeField(_("updated"), auto_now=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("saved view")
        verbose_name_plural = _("saved views")
        base_manager_name = "objects"
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    def document(self) -> dict:
        """Return the description of this view for clients, without what depends on the client."""
        return {
            "view": self.pk,
            "name": self.name,
            "address": self.address,
            "queries": self.queries,
            "layers": self.layers,
            "team": self.team_id,
            "owner": self.owner.get_username(),
        }


class ShareLink(models.Model):
    """A link that shows the answers of some queries, read only and without a login, until it expires or is revoked.

    Only the hash of its secret is kept. With a team it shows queries of that team only; without one, queries of its
    owner only. A query that is not theirs any more is not shown any more.
    """

    name = models.CharField(_("name"), max_length=120)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="share_links", verbose_name=_("made by")
    )
    team = models.ForeignKey(
        Team, models.CASCADE, null=True, blank=True, related_name="share_links", verbose_name=_("team")
    )
    queries = models.ManyToManyField(Query, related_name="share_links", verbose_name=_("queries"))
    address = models.TextField(_("address"), blank=True, validators=[MaxLengthValidator(MAX_ADDRESS_CHARACTERS)])
    digest = models.CharField(max_length=64, unique=True, editable=False)
    expires = models.DateTimeField(_("expires"))
    revoked = models.DateTimeField(_("revoked"), null=True, blank=True, editable=False)
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("share link")
        verbose_name_plural = _("share links")
        base_manager_name = "objects"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.name} ({self.pk})"

    def draw(self) -> str:
        """Draw a new secret of 256 random bits and keep its hash; return the secret. Nothing is saved."""
        secret = secrets.token_urlsafe(32)
        self.digest = hashed(secret)
        return secret

    @property
    def valid(self) -> bool:
        """Whether the link still works."""
        return self.revoked is None and self.expires > timezone.now() and self.owner.is_active

    @classmethod
    def of(cls, secret: str) -> "ShareLink | None":
        """Return the link that has a secret, if it still works."""
        link = cls.objects.select_related("owner").filter(digest=hashed(secret)).first()
        return link if link is not None and link.valid else None

    def document(self) -> dict:
        """Return the description of this link for those who may revoke it; it has no secret."""
        return {
            "link": self.pk,
            "name": self.name,
            "team": self.team_id,
            "owner": self.owner.get_username(),
            "queries": sorted(query.pk for query in self.queries.all()),
            "expires": self.expires.isoformat(),
            "revoked": self.revoked and self.revoked.isoformat(),
        }
