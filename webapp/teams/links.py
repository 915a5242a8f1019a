"""Share links: making, listing and revoking them, and what follows when they end."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from webapp.bus.notify import announce_link_ended, announce_views, team_group, user_group
from webapp.models import ShareLink
from webapp.rights.access import Asker, rights_of
from webapp.rights.quotas import counted_alone
from webapp.words.refusals import Refused

MOST_OF_A_USER = 100


def url_of(secret: str) -> str:
    """Return the address of a link."""
    return f"{settings.PUBLIC_URL}{reverse('shared', args=[secret])}"


def listed(user: Asker) -> list[dict[str, Any]]:
    """Return the links that a user may revoke and that still work, the newest first."""
    links = rights_of(user).links().filter(revoked=None, expires__gt=timezone.now())
    return [link.document() for link in links.select_related("owner").prefetch_related("queries")]


def make(user: User, name: str, queries: list[int], hours: int, address: str = "") -> tuple[ShareLink, str]:
    """Make a link that shows some queries for some hours; return it and its secret, which is kept nowhere.

    Raises
    ------
    Refused
        Where the queries are not all the user's own, or all of one team that the user manages.
    """
    rights = rights_of(user)
    wanted = sorted(set(queries))
    found = list(rights.queries().filter(pk__in=wanted))
    if len(found) < len(wanted):
        missing = sorted(set(wanted) - {query.pk for query in found})
        raise Refused("query", gettext("queries must be ones that you may see; got %(missing)s") % {"missing": missing})
    teams = {query.team_id for query in found}
    team = teams.pop() if len(teams) == 1 else None
    if not (team is not None and rights.manages(team)):
        team = None
        if any(query.owner_id != user.pk for query in found):
            rule = gettext("a link shows your own queries, or queries of one team whose admin you are")
            raise Refused(
                "owner",
                gettext("%(rule)s; got %(value)s")
                % {"rule": rule, "value": ", ".join(query.name for query in found if query.owner_id != user.pk)},
            )
    link = ShareLink(
        name=name, owner=user, team_id=team, address=address, expires=timezone.now() + timedelta(hours=hours)
    )
    secret = link.draw()
    with counted_alone(user):
        _check_count(user)
        link.save()
        link.queries.set(found)
        _announce(link)
    return link, secret


def _check_count(user: User) -> None:
    active = ShareLink.objects.filter(owner=user, revoked=None, expires__gt=timezone.now()).count()
    if active >= MOST_OF_A_USER:
        raise Refused(
            "limit",
            gettext("a user may have at most %(most_of_a_user)s share links; got %(active)s already")
            % {"most_of_a_user": MOST_OF_A_USER, "active": active},
        )


def revoke(user: Asker, number: int) -> ShareLink:
    """End a link now, with its open connections; a second time changes nothing.

    Raises
    ------
    Refused
        Where there is no such link, or the user may not revoke it.
    """
    with transaction.atomic():
        link = rights_of(user).links().select_related("owner").filter(pk=number).first()
        if link is None:
            raise Refused(
                "link",
                gettext("link must be the number of a share link of yours or of a team of yours; got %(number)s")
                % {"number": number},
            )
        if link.revoked is None:
            link.revoked = timezone.now()
            link.save()
            _announce(link)
    return link


def _announce(link: ShareLink) -> None:
    group = user_group(link.owner_id) if link.team_id is None else team_group(link.team_id)
    transaction.on_commit(lambda: announce_views([group]))


@receiver(post_save, sender=ShareLink)
def _saved(instance: ShareLink, **_: object) -> None:
    """End the open connections of a link that was revoked or shortened, whoever did it; they look at it again."""
    number = instance.pk
    transaction.on_commit(lambda: announce_link_ended(number))


@receiver(post_delete, sender=ShareLink)
def _deleted(instance: ShareLink, **_: object) -> None:
    number = instance.pk
    transaction.on_commit(lambda: announce_link_ended(number))
