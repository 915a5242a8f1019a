"""The actions on saved queries, one function each, for the websocket and the admin."""

from collections.abc import Collection
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, F, Manager, QuerySet
from django.db.models.functions import Coalesce
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.errors import InvalidPlan
from streaming.kinds.base import Source
from streaming.kinds.registry import kind_of
from streaming.kinds.sketch.plan import SketchPlan
from streaming.kinds.sketch.reading import document_of
from streaming.plans import parse_plan, plan_document
from streaming.spaces import EARTH
from webapp.alarms.incidents import close_of
from webapp.alarms.rules import check_watched, warn_rules
from webapp.bus.notify import announce, announce_examples
from webapp.bus.sending import send_query
from webapp.bus.telling import tell_task
from webapp.history.snapshots import take_snapshots
from webapp.models import Layer, Query, RemovedExamples, Stream
from webapp.models import Space as SavedSpace
from webapp.models.looks import QUERY_LOOKS
from webapp.queries.estimating import weigh
from webapp.queries.plan_checks import check_filters, check_sketch, note_of_question
from webapp.queries.waiting import sight_changed, stand
from webapp.rights.access import Asker, Rights, rights_of, team_of
from webapp.rights.quotas import counted_alone
from webapp.words.refusals import Refused

# A box without bounds.
EVERYWHERE = {"lo": [None], "hi": [None]}


def checked_plan(document: Any, rights: Rights | None = None, own: bool = True) -> dict:
    """Return a plan in its full form, checked in the space of its stream.

    Parameters
    ----------
    document : dict
    rights : Rights, optional
        Of whoever asks: a layer that they may not see is not there for them. None for Lookout itself.
    own : bool
        Whether the query is theirs. Theirs may name a layer that is not there yet, since it reads what they see;
        somebody else's reads what its owner sees, so they name only layers that they see, too.

    Raises
    ------
    Refused
        Where the plan breaks a rule, its stream or what it joins with is unknown, or a filter cannot be used.
    """
    stream = _stream(document.get("stream") if isinstance(document, dict) else None)
    layers = Layer.objects.all() if rights is None else rights.layers()
    return _checked(document, stream, layers, own or rights is None or rights.views_all("layer"))


def viewed_streams(names: Collection[str]) -> dict[str, Stream]:
    """Return the streams of some names, of which there may be views.

    Raises
    ------
    Refused
        Where there is no such stream in a geographic space.
    """
    found = {stream.name: stream for stream in Stream.objects.select_related("space").filter(name__in=names)}
    for name in names:
        if name not in found:
            raise Refused("stream", _must_be_one_of("stream", Stream.objects.all(), name))
        if not found[name].space.parsed.geographic:
            of = found[name].space_id
            raise Refused(
                "stream",
                gettext("a view must be of streams in a geographic space; got %(name)s of %(of)s")
                % {"name": f"{name!r}", "of": of},
            )
    return found


def view_plan(stream: Stream, area: Any) -> dict:
    """Return the plan of a view of a stream in an area; this asks no database.

    Raises
    ------
    Refused
        Where the area breaks a rule.
    """
    return _checked({"stream": stream.name, "compare": area}, stream)


def watch_plan(stream: Stream, keys: list[str]) -> dict:
    """Return the plan of a view of those objects of a stream that have one of some keys; this asks no database.

    Raises
    ------
    Refused
        Where the keys break a rule.
    """
    return _checked({"stream": stream.name, "compare": EVERYWHERE, "filters": [{"keys": keys}]}, stream)


def _checked(document: Any, stream: Stream | None, layers: QuerySet[Layer] | None = None, waits: bool = True) -> dict:
    """Return the full form of a checked plan over a stream, which is None if no stream has that name."""
    space = stream.space.parsed if stream else EARTH
    try:
        plan = parse_plan(document, space)
    except InvalidPlan as error:
        raise Refused("plan", error) from None
    if stream is None:
        raise Refused("stream", _must_be_one_of("stream", Stream.objects.all(), plan.stream))
    for source in kind_of(plan).sources(plan):
        _check_source(source, stream.space, Layer.objects.all() if layers is None else layers, waits)
    check_filters(plan, space)
    check_sketch(plan, stream)
    return plan_document(plan, space)


def _check_source(source: Source, space: SavedSpace, layers: QuerySet[Layer], waits: bool) -> None:
    """Raise Refused if a layer or stream that a query needs is not in a space; it may wait for one not among layers."""
    if source.type == "layer" and waits and not layers.filter(name=source.name).exists():
        return
    streams: QuerySet[Any] = space.streams.all()
    there = {"layer": layers.filter(space=space), "stream": streams, "stored": streams.filter(stored=True)}[source.type]
    if not there.filter(name=source.name).exists():
        what = gettext("%(key)s: in %(name)s, %(type)s") % {"key": source.key, "name": space.name, "type": source.type}
        raise Refused(source.type, _must_be_one_of(what, there, source.name))


def _must_be_one_of(what: str, there: QuerySet | Manager, name: str) -> str:
    known = ", ".join(sorted(there.values_list("name", flat=True)))
    text = gettext("%(what)s must be one of %(known)s; got %(name)s")
    return text % {"what": what, "known": known or gettext("(none yet)"), "name": repr(name)}


def _stream(name: Any) -> Stream | None:
    """Return the stream of a name with its space; None if there is none."""
    return Stream.objects.select_related("space").filter(name=name).first() if isinstance(name, str) else None


def question(plan: Any = None, text: str | None = None) -> tuple[str, dict[str, Any], str | None]:
    """Return the space and the full plan of a question to a sketch, given as a plan or as a text, and a note about it.

    Raises
    ------
    Refused
        Where there is not one of the two, or it breaks a rule.
    """
    if (plan is None) == (text is None):
        raise Refused("fields", _("sketch.ask needs either plan, an object, or text"))
    try:
        document = plan if text is None else document_of(text)
    except InvalidPlan as error:
        raise Refused("plan", error) from None
    if document.get("kind") != "sketch":
        raise Refused(
            "plan", gettext("kind must be sketch; got %(value)s") % {"value": f"{document.get('kind')!r:.80}"}
        )
    document = checked_plan(document)
    stream = _stream(document["stream"])
    assert stream is not None  # the plan was checked over it
    parsed = cast("SketchPlan", parse_plan(document, stream.space.parsed))
    return stream.space_name, document, note_of_question(parsed, stream)


def register(
    owner: User,
    name: str,
    plan: Any,
    shared: bool = False,
    severity: str = "",
    team: int | None = None,
    look: int | None = None,
    confirmed: bool = False,
) -> Query:
    """Save a query and have it registered in the engine; without a look, it gets the rarest one that its owner sees.

    Raises
    ------
    Refused
        As `checked_plan` and `weigh` do, where the user may not give the query to that team, and where the user has
        `MAX_QUERIES_PER_USER` queries already.
    """
    rights = rights_of(owner)
    document = _accepted(owner, plan, confirmed)
    to = team_of(rights, team)
    stream = _stream(document["stream"])
    assert stream is not None  # the plan was checked over it
    about: dict[str, Any] = {"stream": stream.name, "space": stream.space, "team": to}
    about |= {"shared": shared, "severity": severity}
    query = Query(owner=owner, name=name, plan=document, **about)
    _check_severity(query)
    with counted_alone(owner):
        _check_count(owner)
        query.look = _rarest_look(rights) if look is None else look
        stand(query)
        query.save()
    _send(query)
    return query


def _rarest_look(rights: Rights) -> int:
    """Return the first of those looks that the fewest queries have that a user sees."""
    of = Coalesce("look", F("pk") % QUERY_LOOKS)
    used = dict(rights.listed().order_by().values_list(of).annotate(Count("pk")))
    return min(range(QUERY_LOOKS), key=lambda look: used.get(look, 0))


def _check_count(owner: User) -> None:
    if (count := Query.objects.alive().filter(owner=owner).count()) >= settings.MAX_QUERIES_PER_USER:
        raise Refused(
            "limit",
            gettext("a user may have at most %(max_queries_per_user)s queries; got %(count)s already")
            % {"max_queries_per_user": settings.MAX_QUERIES_PER_USER, "count": count},
        )


def _accepted(user: User, plan: Any, confirmed: bool, number: int | None = None) -> dict[str, Any]:
    """Return the checked plan of a new query, or of one that is saved already. Whoever saves a plan asks here."""
    rights = rights_of(user)
    before = None if number is None else rights.queries().filter(pk=number).first()
    own = number is None or (before is not None and before.owner_id == user.pk)
    document = checked_plan(plan, rights, own)
    check_watched(user, document)
    if before is None or before.plan != document:
        weigh(document, rights.layers(), confirmed)
    return document


def edit(user: User, number: int, confirmed: bool = False, **changes: Any) -> Query:
    """Change the name, plan, shared, team, paused, severity or look of a query, and have the engine told.

    Its open incidents close if its plan changes, or if it is paused or no longer opens incidents. `confirmed` says that
    a plan is wanted although there may be no room for it. An edit that the engine need not know of, such as another
    name, leaves the query as it is there; a plan that is saved as it was has a query tried again that lacks its answer.

    Raises
    ------
    Refused
        Where the user may not see or change the query, it has been cancelled, its new plan breaks a rule, and as
        `weigh` does.
    """
    rights = rights_of(user)
    if "plan" in changes:
        changes["plan"] = _accepted(user, changes["plan"], confirmed, number)
        changes["stream"] = changes["plan"]["stream"]
    query, was_shared, was_team = _changed(user, rights, number, changes)
    _send(query, was_shared, was_team)
    if (was_shared, was_team) != (query.shared, query.team_id):
        transaction.on_commit(lambda: sight_changed(query))
    return query


def _changed(user: User, rights: Rights, number: int, changes: dict[str, Any]) -> tuple[Query, bool, int | None]:
    """Save checked changes of a query; return it, and who saw it before: whether all did, and which team."""
    with transaction.atomic():
        query = _editable(rights, number)
        if query.status == Query.CANCELLED:
            raise Refused("query", gettext("a cancelled query cannot change; got %(number)s") % {"number": number})
        _check_sharing(rights, query, changes)
        if "stream" in changes:
            _check_space(query, changes["stream"])
        was_shared, was_team = query.shared, query.team_id
        why = _why_close(query, user, changes)
        before, again = _concerns_engine(query), "plan" in changes and query.failed
        for field, value in changes.items():
            setattr(query, field, value)
        _check_severity(query)
        if again or _concerns_engine(query) != before:
            stand(query)
            query.revision += 1
        query.save()
        if why:
            close_of([query], why)
    return query, was_shared, was_team


def cancel(user: User, number: int) -> Query:
    """End a query for good; ending it again changes nothing.

    Raises
    ------
    Refused
        Where the user may not see or change the query.
    """
    with transaction.atomic():
        query = _editable(rights_of(user), number)
        if query.status == Query.CANCELLED:
            return query
        close_of([query], f"{user.get_username()} deleted the query")
        query.status, query.error, query.warning, query.warnings = Query.CANCELLED, "", "", {}
        query.revision += 1
        query.save()
    _send(query)
    announce(warn_rules(query))
    return query


def show_examples(user: User, shown: bool) -> None:
    """Show a user the examples of the demonstration, or remove them, on all connections of the user."""
    RemovedExamples.show(user, shown)
    transaction.on_commit(lambda: announce_examples(user, shown))


def visible(user: Asker, number: int) -> Query:
    """Return a query if the user may see its answer; otherwise raise Refused."""
    query = rights_of(user).queries().select_related("owner").filter(pk=number).first()
    if query is None:
        raise Refused(
            "query",
            gettext("query must be the number of a query that you may see; got %(number)s") % {"number": number},
        )
    return query


def visible_among(user: Asker, numbers: Collection[int]) -> list[Query]:
    """Return those of some queries whose answers a user may see, ordered by number."""
    return list(rights_of(user).queries().select_related("owner").filter(pk__in=numbers).order_by("pk"))


def _check_sharing(rights: Rights, query: Query, changes: dict[str, Any]) -> None:
    """Raise Refused unless the user may make these changes of who sees a query; look up its team."""
    if "team" in changes:
        changes["team"] = team_of(rights, changes["team"]) if changes["team"] != query.team_id else query.team
    same = changes.get("shared", query.shared) == query.shared and changes.get("team", query.team) == query.team
    if not same and not rights.shares(query):
        raise Refused(
            "owner",
            gettext("only its owner or an admin of its team may choose who sees a query; got %(pk)s")
            % {"pk": query.pk},
        )


def _editable(rights: Rights, number: int) -> Query:
    query = Query.objects.select_for_update(of=("self",)).select_related("owner", "team").filter(pk=number).first()
    if query is None or not rights.sees(query):
        raise Refused(
            "query",
            gettext("query must be the number of a query that you may see; got %(number)s") % {"number": number},
        )
    if not rights.edits(query):
        whose = (
            gettext("belongs to %(owner)s") % {"owner": query.owner.get_username()}
            if query.owner
            else gettext("is an example, which staff may change")
        )
        rule = gettext("only its owner, or an analyst of its team, may change a query")
        raise Refused("owner", f"{rule}; {number} {whose}")
    return query


def _check_space(query: Query, name: str) -> None:
    """Raise Refused if a stream lies in another space than a query: a query stays with the engine of its space."""
    stream = _stream(name)
    if stream is not None and stream.space_id != query.space_id:
        where = gettext("got %(name)s of %(space_id)s") % {"name": repr(name), "space_id": stream.space_id}
        raise Refused(
            "stream",
            gettext("stream must lie in the space of the query, %(space_id)s; %(where)s")
            % {"space_id": query.space_id, "where": where},
        )


def _check_severity(query: Query) -> None:
    """Raise Refused if a query with a severity has no events that could open incidents."""
    if query.severity and query.plan.get("kind") == "sketch":
        raise Refused(
            "plan",
            gettext("a query of a sketch opens no incidents; severity must be empty, got %(severity)s")
            % {"severity": f"{query.severity!r}"},
        )


def _why_close(query: Query, user: User, changes: dict[str, Any]) -> str:
    """Say why the open incidents of a query close with a change; empty if they stay open."""
    whys = {
        "plan": "changed what the query asks for" if changes.get("plan", query.plan) != query.plan else "",
        "paused": "paused the query" if changes.get("paused") and not query.paused else "",
        "severity": "made the query open no incidents" if query.severity and changes.get("severity") == "" else "",
    }
    done = " and ".join(filter(None, whys.values()))
    return done and f"{user.get_username()} {done}"


def _concerns_engine(query: Query) -> tuple[Any, ...]:
    """Return what the engine does with a query: what it evaluates, whether it does, and whom that counts for."""
    return query.plan, query.paused, query.counts_for


def _send(query: Query, was_shared: bool = False, was_team: int | None = None) -> None:
    """Announce a change to connections, and start a task that tells the engine."""
    if query.should_run and "stored" in query.plan.get("join", {}):
        transaction.on_commit(lambda: tell_task(take_snapshots))
    transaction.on_commit(lambda: announce([query], was_shared, lists=True, was_team=was_team))
    transaction.on_commit(lambda: tell_task(send_query, query.pk))
