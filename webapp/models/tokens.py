"""Secrets that stand for a user: tokens of programs, one-time login links. Only their hashes are kept."""

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

LINK_LIFE = timedelta(hours=1)
# A token is written down as used at most this often: a busy program costs no write per connection.
USE_RESOLUTION = timedelta(minutes=1)


def hashed(secret: str) -> str:
    """Return the hash under which a secret is kept; these are random and long, so a fast hash is safe."""
    return hashlib.sha256(secret.encode()).hexdigest()


class ApiToken(models.Model):
    """Lets a program act as a user."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens", verbose_name="user")
    name = models.CharField("name", max_length=80, help_text="What it is for.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created = models.DateTimeField("created", auto_now_add=True)
    last_used = models.DateTimeField("last used", null=True, editable=False)

    class Meta:
        ordering = ["-id"]
        verbose_name = "API token"

    def __str__(self) -> str:
        return self.name

    def draw(self) -> str:
        """Give this token a new secret and return it: the only time that it can be read."""
        secret = secrets.token_urlsafe(32)
        self.digest = hashed(secret)
        return secret

    @classmethod
    def user_of(cls, secret: str):
        """Return the active user for whom a secret stands, or None."""
        token = cls.objects.select_related("user").filter(digest=hashed(secret), user__is_active=True).first()
        if token is None:
            return None
        now = timezone.now()
        if token.last_used is None or now - token.last_used > USE_RESOLUTION:
            cls.objects.filter(pk=token.pk).update(last_used=now)
        return token.user


class LoginLink(models.Model):
    """Logs a user in, once, within an hour."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    digest = models.CharField(max_length=64, unique=True)
    expires = models.DateTimeField()

    @classmethod
    def issue(cls, user) -> str:
        """Return the secret of a new link."""
        secret = secrets.token_urlsafe(32)
        cls.objects.filter(expires__lt=timezone.now()).delete()
        cls.objects.create(user=user, digest=hashed(secret), expires=timezone.now() + LINK_LIFE)
        return secret

    @classmethod
    def spend(cls, secret: str):
        """Return the user of a link that is still good, and end the link; None otherwise."""
        link = cls.objects.select_related("user").filter(digest=hashed(secret), expires__gt=timezone.now()).first()
        # The row that the delete removes decides: of two requests at once, one gets in.
        if link is None or not cls.objects.filter(pk=link.pk).delete()[0]:
            return None
        return link.user if link.user.is_active else None
