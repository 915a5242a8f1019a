"""What people do with saved queries: one function each, used by the websocket and by the admin alike."""

from typing import Any

from django.conf import settings
from django.db import transaction

from streaming.errors import InvalidPlan
from streaming.plans import Plan, parse_plan, plan_document
from streaming.spaces import SPACES
from webapp.models import Query, Stream
from webapp.notify import announce


class Refused(Exception):
    """A request that is not carried out.

    Parameters
    ----------
    code : str
        One word for programs, such as ``plan``.
    message : str
        The rule, then the value, for people.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def checked_plan(document: Any) -> dict:
    """Return a plan in its full form.

    Raises
    ------
    Refused
        Where the plan breaks a rule, or its stream is unknown.
    """
    space = SPACES[settings.SPACE]
    try:
        plan = parse_plan(document, space)
    except InvalidPlan as error:
        raise Refused("plan", str(error)) from None
    check_stream(plan)
    return plan_document(plan, space)


def check_stream(plan: Plan) -> None:
    """Raise Refused where the plan's stream does not exist."""
    known = sorted(Stream.objects.values_list("name", flat=True))
    if plan.stream not in known:
        raise Refused("stream", f"stream must be one of {', '.join(known) or '(none yet)'}; got {plan.stream!r}")


def register(owner, name: str, plan: Any, shared: bool = False) -> Query:
    """Save a query and send it on its way to the engine."""
    document = checked_plan(plan)
    if (count := Query.objects.alive().filter(owner=owner).count()) >= settings.MAX_QUERIES_PER_USER:
        raise Refused("limit", f"a user may have at most {settings.MAX_QUERIES_PER_USER} queries; got {count} already")
    query = Query(owner=owner, name=name, plan=document, stream=document["stream"], shared=shared)
    query.save()
    _send(query)
    return query


def edit(user, number: int, **changes: Any) -> Query:
    """Change the name, plan, shared or paused of a query.

    Raises
    ------
    Refused
        Where there is no such query for this user, it has been cancelled, or its new plan breaks a rule.
    """
    if "plan" in changes:
        changes["plan"] = checked_plan(changes["plan"])
        changes["stream"] = changes["plan"]["stream"]
    with transaction.atomic():
        query = _editable(user, number)
        if query.status == Query.CANCELLED:
            raise Refused("query", f"a cancelled query cannot change; got {number}")
        was_shared = query.shared
        for field, value in changes.items():
            setattr(query, field, value)
        query.status = Query.PAUSED if query.paused else Query.PENDING
        _revise(query)
    _send(query, was_shared)
    return query


def cancel(user, number: int) -> Query:
    """End a query; ending it again changes nothing."""
    with transaction.atomic():
        query = _editable(user, number)
        if query.status == Query.CANCELLED:
            return query
        query.status = Query.CANCELLED
        _revise(query)
    _send(query)
    return query


def visible(user, number: int) -> Query:
    """Return a query that a user may see the answer of."""
    query = Query.objects.alive().select_related("owner").filter(pk=number).first()
    if query is None or not query.visible_to(user):
        raise Refused("query", f"query must be the number of a query of yours or a shared one; got {number}")
    return query


def visible_among(user, numbers: list[int]) -> list[int]:
    """Return which of some queries a user may see the answer of, as numbers in their order."""
    known = Query.objects.alive().select_related("owner").filter(pk__in=numbers).order_by("pk")
    return [query.pk for query in known if query.visible_to(user)]


def _editable(user, number):
    query = Query.objects.select_for_update().select_related("owner").filter(pk=number).first()
    if query is None or not query.visible_to(user):
        raise Refused("query", f"query must be the number of a query of yours or a shared one; got {number}")
    if not query.editable_by(user):
        raise Refused("owner", f"only its owner may change a query; {number} belongs to {query.owner.get_username()}")
    return query


def _revise(query):
    query.revision += 1
    query.error = ""
    query.save()


def _send(query, was_shared=False):
    """Announce a change, and have a task tell the engine of it."""
    from webapp.tasks import cancel_query, register_query  # the tasks import this module's models

    task = register_query if query.should_run else cancel_query
    transaction.on_commit(lambda: announce(query, was_shared))
    transaction.on_commit(lambda: task.delay(query.pk))
