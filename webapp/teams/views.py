"""The actions on saved views of the map, one function each."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext

from webapp.bus.notify import announce_views, team_group, user_group
from webapp.models import SavedView
from webapp.rights.access import Asker, Rights, rights_of, team_of
from webapp.rights.quotas import counted_alone
from webapp.words.refusals import Refused

MOST_OF_A_USER = 500


def listed(user: Asker) -> list[dict[str, Any]]:
    """Return the saved views that a user may see, by name, as clients get them."""
    rights = rights_of(user)
    views = rights.views().select_related("owner")
    return [view.document() | {"mine": view.owner_id == user.pk, "editable": rights.edits_view(view)} for view in views]


def add(user: User, name: str, team: int | None, **shown: Any) -> SavedView:
    """Save a view.

    Raises
    ------
    Refused
        Where the user may not give it to that team, or has too many.
    """
    with counted_alone(user):
        if (count := SavedView.objects.filter(owner=user).count()) >= MOST_OF_A_USER:
            raise Refused(
                "limit",
                gettext("a user may have at most %(most_of_a_user)s saved views; got %(count)s already")
                % {"most_of_a_user": MOST_OF_A_USER, "count": count},
            )
        view = SavedView(owner=user, team=team_of(rights_of(user), team), name=name, **shown)
        view.save()
        _announce(view)
    return view


def edit(user: User, number: int, **changes: Any) -> SavedView:
    """Change the name, the team, or what a view shows.

    Raises
    ------
    Refused
        Where there is no such view, or the user may not change it so.
    """
    rights = rights_of(user)
    with transaction.atomic():
        view = _editable(rights, number)
        former = view.team_id
        if "team" in changes and changes["team"] != former:
            if view.owner_id != user.pk and not rights.manages(former):
                raise Refused(
                    "owner",
                    gettext("only its owner or an admin of its team may choose who sees a view; got %(number)s")
                    % {"number": number},
                )
            view.team = team_of(rights, changes["team"])
        for field in {"name", "address", "queries", "layers"} & changes.keys():
            setattr(view, field, changes[field])
        view.name = view.name.strip()
        view.save()
        _announce(view, former)
    return view


def delete(user: User, number: int) -> None:
    """Delete a view.

    Raises
    ------
    Refused
        Where there is no such view, or the user may not change it.
    """
    with transaction.atomic():
        view = _editable(rights_of(user), number)
        _announce(view)
        view.delete()


def _editable(rights: Rights, number: int) -> SavedView:
    view = rights.views().select_related("owner").filter(pk=number).select_for_update(of=("self",)).first()
    if view is None:
        raise Refused(
            "view",
            gettext("view must be the number of a saved view that you may see; got %(number)s") % {"number": number},
        )
    if not rights.edits_view(view):
        rule = gettext("only its owner, or an analyst of its team, may change a view")
        raise Refused(
            "owner",
            gettext("%(rule)s; %(number)s belongs to %(get_username)s")
            % {"rule": rule, "number": number, "get_username": view.owner.get_username()},
        )
    return view


def _announce(view: SavedView, former: int | None = None) -> None:
    teams = {team for team in (view.team_id, former) if team is not None}
    groups = [user_group(view.owner_id), *map(team_group, teams)]
    transaction.on_commit(lambda: announce_views(groups))
