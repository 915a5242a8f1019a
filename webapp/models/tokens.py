"""Secrets that identify a user: API tokens of programs and one-time login links. Only their hashes are kept."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from webapp.models.audited import AuditedQuerySet

LINK_LIFE = timedelta(hours=1)
# The last use of a token is saved at most this often, so that a busy program does not cause a write per connection.
USE_RESOLUTION = timedelta(minutes=1)


def hashed(secret: str) -> str:
    """Return the hash of a secret, in hex; a fast hash is safe, because secrets are long and random."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """A token with which a program acts as a user."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=80, help_text=_("What it is for."))
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created = models.DateTimeField(_("created"), auto_now_add=True)
    last_used = models.DateTimeField(_("last used"), null=True, editable=False)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name_plural = _("API tokens")
        base_manager_name = "objects"
        ordering = ["-id"]
        verbose_name = _("API token")

    def __str__(self) -> str:
        return self.name

    def draw(self) -> str:
        """Give this token a new secret and return it; it cannot be read again later. Nothing is saved."""
        secret = secrets.token_hex(32)  # programs take it as an argument, so it must not begin with a dash
        self.digest = hashed(secret)
        return secret

    @classmethod
    def user_of(cls, secret: str) -> User | None:
        """Return the active user whose token has this secret, or None; save when it was used."""
        token = cls.objects.select_related("user").filter(digest=hashed(secret), user__is_active=True).first()
        if token is None:
            return None
        now = timezone.now()
        if token.last_used is None or now - token.last_used > USE_RESOLUTION:
            cls.objects.filter(pk=token.pk).update(last_used=now)
        return token.user


class LoginLink(models.Model):
    """A link that logs a user in once, within `LINK_LIFE`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    expires = models.DateTimeField()

    @classmethod
    def issue(cls, user: User) -> str:
        """Save a new link for a user and return its secret; delete expired links."""
        secret = secrets.token_urlsafe(32)
        cls.objects.filter(expires__lt=timezone.now()).delete()
        cls.objects.create(user=user, digest=hashed(secret), expires=timezone.now() + LINK_LIFE)
        return secret

    @classmethod
    def spend(cls, secret: str) -> User | None:
        """Use up a link and return its user; None if it has expired, was used before or its user is not active."""
        link = cls.objects.select_related("user").filter(digest=hashed(secret), expires__gt=timezone.now()).first()
        # Whoever deletes the row may log in, so of two concurrent requests only one succeeds.
        if link is None or not cls.objects.filter(pk=link.pk).delete()[0]:
            return None
        return link.user if link.user.is_active else None
