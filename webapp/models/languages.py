"""The language of a user, for what reaches people who have no page open: mails and other alarms."""

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext_lazy as _


class UserLanguage(models.Model):
    """The language that a user chose last."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="+", verbose_name=_("user")
    )
    language = models.CharField(_("language"), max_length=10)

    class Meta:
        verbose_name = _("language of a user")
        verbose_name_plural = _("languages of users")

    def __str__(self) -> str:
        return f"{self.user}: {self.language}"


def language_of_user(user_id: int | None) -> str:
    """Return the language that a user chose last; that of this Lookout for a team, or a user who chose none."""
    chosen = UserLanguage.objects.filter(user=user_id).values_list("language", flat=True).first() if user_id else None
    return chosen if chosen in dict(settings.LANGUAGES) else settings.LANGUAGE_CODE


def keep_language(user: User, language: str) -> None:
    """Save the language that a user chose, if it is one of this Lookout's."""
    if language in dict(settings.LANGUAGES):
        UserLanguage.objects.update_or_create(user=user, defaults={"language": language})
