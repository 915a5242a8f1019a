"""``{% load words %}``: stored words, such as a role or a severity, in the user's language."""

from django import template
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

register = template.Library()
WORDS: dict[str, str | Promise] = {
    "viewer": _("viewer"),
    "analyst": _("analyst"),
    "admin": _("admin"),
    "info": _("info"),
    "warning": _("warning"),
    "critical": _("critical"),
    "opened": _("opened"),
    "closed": _("closed"),
    "acknowledged": _("acknowledged"),
    "assigned": _("assigned"),
    "commented": _("commented"),
    "snoozed": _("snoozed"),
    "woken": _("woken"),
    "pending": _("pending"),
    "sent": _("sent"),
    "failed": _("failed"),
    "dead": _("dead"),
    "digested": _("digested"),
    "websocket": _("websocket"),
    "http": _("http"),
    "command": _("command"),
    "lookout": "lookout",
}


@register.filter
def in_words(stored: str) -> str | Promise:
    """Return a stored word in the user's language; one that is not known as it is."""
    return WORDS.get(stored, stored)
