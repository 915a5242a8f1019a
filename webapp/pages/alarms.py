"""The page of a user's alarms: which ones come, and notifications in this browser."""

import hashlib
import json
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from streaming.errors import InvalidOptions
from webapp.delivery.channels.base import NotDelivered
from webapp.delivery.messages import message_of, trial_document
from webapp.models import Channel, Delivery, Severity, Subscription
from webapp.models.delivery import new_key
from webapp.pages.static import modules
from webapp.rights.quotas import counted_alone
from webapp.rights.signed_in import SignedInRequest
from webapp.words.refusals import Refused
from webapp.words.text import read_json

MODULE = "js/alarms/main.js"
KIND = "push"
MOST_BROWSERS = 20
LATEST = 20
_TRIALS = threading.BoundedSemaphore(2)


@never_cache
@require_safe
@login_required
def page(request: HttpRequest) -> HttpResponse:
    """Show a user's subscriptions, the latest alarms, and the switch for this browser."""
    mine = Q(user=request.user) | Q(team__memberships__user=request.user)
    subscriptions = Subscription.objects.filter(mine).select_related("channel", "team").prefetch_related("queries")
    latest = Delivery.objects.filter(subscription__in=subscriptions).select_related("channel").order_by("-pk")[:LATEST]
    key, problem = _public_key()
    context = {
        "subscriptions": subscriptions,
        "latest": [(told, message_of(told.key, told.document).subject) for told in latest],
        "severities": Severity,
        "key": key,
        "problem": problem,
        "module": MODULE,
        "scripts": modules(MODULE),
    }
    return render(request, "alarms.html", context)


def answers_json(view: Callable) -> Callable:
    """Return a view that takes a JSON object by POST and answers with one; a broken rule is an `error`."""

    @never_cache
    @require_POST
    @login_required
    @wraps(view)
    def answering(request: SignedInRequest) -> HttpResponse:
        try:
            document = read_json(request.body.decode())
            if not isinstance(document, dict):
                raise Refused("alarms", _("a request must be a JSON object"))
            return JsonResponse(view(request.user, document))
        except ValueError as error:
            return JsonResponse({"error": str(error)}, status=400)
        except Refused as refused:
            return JsonResponse({"error": refused.message}, status=400)

    return answering


@answers_json
def browser(user: User, document: dict[str, Any]) -> dict[str, Any]:
    """Send a user's alarms to a browser from now on; `subscription` is what the browser's push manager gave."""
    subscription, endpoint = _subscription(document)
    severity = document.get("severity")
    if severity not in Severity.values:
        raise Refused(
            "alarms",
            gettext("severity must be one of %(values)s; got %(severity)s")
            % {"values": ", ".join(Severity.values), "severity": f"{severity!r}"},
        )
    with counted_alone(user):
        channel = _channel(user, _name(user, endpoint), subscription)
        Subscription.objects.update_or_create(user=user, channel=channel, defaults={"severity": severity})
    return {"severity": severity}


def _channel(user: User, name: str, subscription: str) -> Channel:
    """Save the channel of a browser, a new one if there are not too many; return it."""
    channel = Channel.objects.filter(owner=user, kind=KIND, name=name).first()
    if channel is None and Channel.objects.filter(owner=user, kind=KIND).count() >= MOST_BROWSERS:
        raise Refused(
            "alarms",
            gettext("a user may have at most %(most_browsers)s browsers; remove one in the administration")
            % {"most_browsers": MOST_BROWSERS},
        )
    channel = channel or Channel(owner=user, kind=KIND, name=name)
    channel.secrets = {"subscription": subscription}
    try:
        channel.full_clean()
    except ValidationError as error:
        raise Refused("alarms", " ".join(error.messages)) from None
    channel.save()
    return channel


@answers_json
def known(user: User, document: dict[str, Any]) -> dict[str, Any]:
    """Say which severity a browser gets; None if it gets no alarms of this user."""
    found = Subscription.objects.filter(user=user, channel__in=_channels(user, document), enabled=True)
    return {"severity": found.values_list("severity", flat=True).first()}


@answers_json
def forget(user: User, document: dict[str, Any]) -> dict[str, Any]:
    """Send a browser no more alarms of a user."""
    _channels(user, document).delete()
    return {"severity": None}


@answers_json
def trial(user: User, document: dict[str, Any]) -> dict[str, Any]:
    """Send a test to a browser that gets alarms."""
    from webapp.delivery.sending import send_now  # late: it loads a library that other pages do not need

    channel = _channels(user, document).first()
    if channel is None:
        raise Refused("alarms", _("this browser gets no alarms yet"))
    if not _TRIALS.acquire(blocking=False):
        raise Refused("alarms", _("two tests run already; try again in some seconds"))
    try:
        _status, took_s = send_now(
            channel, message_of(new_key(), trial_document(gettext("notifications in this browser")))
        )
    except NotDelivered as error:
        # What a server answers is for staff: the address came from the user.
        status = error.status or gettext("unknown")
        refused = gettext("the push service refused it; status %(status)s") % {"status": status}
        words = str(error) if user.is_staff else refused
        raise Refused("alarms", words) from None
    finally:
        _TRIALS.release()
    return {"sent": gettext("The push service accepted it after %(took)s ms.") % {"took": f"{took_s * 1000:.0f}"}}


def _subscription(document: dict[str, Any]) -> tuple[str, str]:
    """Return the subscription of a browser as text, and its endpoint."""
    told = document.get("subscription")
    if not isinstance(told, dict) or not isinstance(told.get("endpoint"), str):
        raise Refused("alarms", _("subscription must be an object with an endpoint"))
    return json.dumps(told), told["endpoint"]


def _channels(user: User, document: dict[str, Any]) -> QuerySet[Channel]:
    endpoint = document.get("endpoint")
    if not isinstance(endpoint, str):
        raise Refused("alarms", gettext("endpoint must be a text; got %(endpoint)s") % {"endpoint": f"{endpoint!r}"})
    return Channel.objects.filter(owner=user, kind=KIND, name=_name(user, endpoint))


def _name(user: User, endpoint: str) -> str:
    number = hashlib.sha256(endpoint.encode()).hexdigest()[:8]
    return (gettext("Browser %(number)s of %(user)s") % {"number": number, "user": user.get_username()})[:80]


def _public_key() -> tuple[str, str]:
    """Return the key that browsers subscribe with, or why there is none."""
    try:
        from webapp.delivery.channels.push import public_key

        return public_key(), ""
    except (ImportError, InvalidOptions) as error:
        return "", str(error)
