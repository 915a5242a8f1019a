"""The actions on members of teams, and what follows when a user's rights change, by whatever way."""

from collections.abc import Collection

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_delete
from django.dispatch import receiver
from django.utils.translation import gettext

from webapp.bus.notify import announce, announce_link_ended, announce_membership
from webapp.models import Membership, Query, Role, ShareLink, Team
from webapp.queries.waiting import follow_now, rights_changed
from webapp.rights.access import ADMINS, Asker, rights_of
from webapp.words.refusals import Refused


def managed(user: Asker, number: int) -> Team:
    """Return a team that a user manages, locked until the transaction ends; raise Refused if there is none.

    A team is locked so that two admins cannot remove each other at the same time.
    """
    rights = rights_of(user)
    team = Team.objects.select_for_update().filter(pk=number).first()
    if team is None or not rights.teams().filter(pk=number).exists():
        raise Refused(
            "team", gettext("team must be the number of a team of yours; got %(number)s") % {"number": number}
        )
    if not rights.manages(number):
        raise Refused(
            "owner", gettext("only an admin of a team may manage it; you are no admin of %(team)s") % {"team": team}
        )
    return team


def put(user: Asker, team: int, name: str, role: str) -> Membership:
    """Add a user to a team, or give a member another role.

    Raises
    ------
    Refused
        Where the user does not manage the team, there is no such user or role, or the team would have no admin.
    """
    if role not in Role.values:
        raise Refused(
            "fields",
            gettext("role must be one of %(values)s; got %(role)s")
            % {"values": ", ".join(Role.values), "role": f"{role!r:.40}"},
        )
    with transaction.atomic():
        of = managed(user, team)
        found = get_user_model().objects.filter(username=name, is_active=True).first()
        if found is None:
            raise Refused(
                "user", gettext("the name must be that of an active user; got %(name)s") % {"name": f"{name!r:.80}"}
            )
        member = Membership.objects.filter(team=of, user=found).first() or Membership(team=of, user=found)
        if member.pk is not None and role not in ADMINS:
            _check_admin_left(of, member)
        member.role = role
        member.save()
    return member


def remove(user: Asker, team: int, name: str) -> None:
    """Remove a member from a team, which ends what the member sees of it at once; members may remove themselves.

    Raises
    ------
    Refused
        Where the user may not do so, there is no such member, or the team would have no admin.
    """
    with transaction.atomic():
        of = Team.objects.select_for_update().filter(pk=team).first() if name == user.get_username() else None
        of = of or managed(user, team)
        member = Membership.objects.filter(team=of, user__username=name).select_related("user", "team").first()
        if member is None:
            raise Refused(
                "user",
                gettext("the name must be that of a member of %(of)s; got %(name)s")
                % {"of": of, "name": f"{name!r:.80}"},
            )
        _check_admin_left(of, member)
        member.delete()


def _check_admin_left(team: Team, member: Membership) -> None:
    """Raise Refused if a member is the only admin of a team; staff may do it in the admin."""
    others = Membership.objects.filter(team=team, role__in=ADMINS).exclude(pk=member.pk)
    if member.role in ADMINS and not others.exists():
        raise Refused(
            "team",
            gettext("a team must have an admin; %(user)s is the only one of %(team)s")
            % {"user": member.user, "team": team},
        )


@receiver([post_save, post_delete], sender=Membership)
def _changed(instance: Membership, **_: object) -> None:
    user = instance.user_id
    transaction.on_commit(lambda: _rights_changed(user))


def _rights_changed(user: int) -> None:
    """Let a user's connections look at the user's rights, and the user's queries wait or start by them."""
    announce_membership(user)
    rights_changed(user)


@receiver(post_save, sender=get_user_model())
def _user_changed(instance: User, created: bool, update_fields: Collection[str] | None = None, **_: object) -> None:
    """Let the user's connections look at their rights: the user may be inactive now, or no longer staff."""
    if not created and update_fields != frozenset({"last_login"}):
        number = instance.pk
        transaction.on_commit(lambda: _tell_user(number))


def _tell_user(number: int) -> None:
    """Let the connections of a user, and of guests by the user's links, look at their rights."""
    _rights_changed(number)
    for link in ShareLink.objects.filter(owner=number, revoked=None).values_list("pk", flat=True):
        announce_link_ended(link)


@receiver(m2m_changed, sender=Group.permissions.through)
@receiver(m2m_changed, sender=get_user_model().groups.through)
@receiver(m2m_changed, sender=get_user_model().user_permissions.through)
@receiver(post_delete, sender=Group)
def _permissions_changed(**_: object) -> None:
    """Let all staff look at their rights once permissions changed, which only theirs depend on."""
    transaction.on_commit(_tell_staff)


def _tell_staff() -> None:
    for number in get_user_model().objects.filter(is_staff=True).values_list("pk", flat=True):
        _rights_changed(number)


@receiver(post_delete, sender=get_user_model())
def _user_deleted(instance: User, **_: object) -> None:
    number = instance.pk
    transaction.on_commit(lambda: announce_membership(number))


@receiver(pre_delete, sender=Team)
def _team_leaves(instance: Team, **_: object) -> None:
    """Tell of the queries of a deleted team, which belong to their owners alone from then on; it has no layers."""
    team = instance.pk
    queries = list(Query.objects.filter(team=team).values_list("pk", flat=True))

    def tell() -> None:
        announce(Query.objects.filter(pk__in=queries).select_related("owner"), was_team=team, lists=True)
        follow_now()

    transaction.on_commit(tell)
