"""Who asks by HTTP: a user by a session or an API token. Views that staff alone read, and those of every user.

There is no way without either: a proxy on this machine makes every request look as if it came from this machine.
"""

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache

from streaming.errors import LookoutError
from webapp.models import ApiToken
from webapp.rights.access import Asker
from webapp.rights.guesses import TOO_MANY, Guesses
from webapp.words.refusals import Refused

SCHEMES = ("token", "bearer")
NOT_STAFF = "metrics are for staff: send the API token of a staff user as `Authorization: Bearer <token>`\n"
# Codes of `Refused` for which a view of users has a status of its own; it is 400 otherwise.
STATUSES = {"stream": 404, "query": 404, "layer": 404, "busy": 503}
_GUESSES, _LOCK = Guesses(), threading.Lock()

View = Callable[..., HttpResponse]


def for_staff(view: View) -> View:
    """Return a view that answers staff only; anybody else gets status 401, 403, or 429 after too many wrong tokens."""

    @wraps(view)
    def guarded(request: HttpRequest) -> HttpResponse:
        user, busy = user_of(request)
        if busy:
            return HttpResponse(f"{TOO_MANY[1]}\n", status=429, content_type="text/plain")
        if user.is_active and user.is_staff:
            request.user = user  # type: ignore[assignment]  # a guest is no staff
            return view(request)
        response = HttpResponse(NOT_STAFF, status=403 if user.is_authenticated else 401, content_type="text/plain")
        if not user.is_authenticated:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response

    return guarded


def for_users(view: View) -> View:
    """Return a view of a user's GET that answers whoever has logged in, and says in JSON what it refuses."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        user, busy = user_of(request)
        if (refusal := _refusal(request, user, busy)) is not None:
            return refusal
        try:
            return view(request, user, *arguments, **named)
        except Refused as refused:
            return _error(STATUSES.get(refused.code, 400), refused.message)
        except LookoutError as error:
            return _error(400, str(error))

    return guarded


def _refusal(request: HttpRequest, user: Asker, busy: bool) -> HttpResponse | None:
    """Return what a request gets that no user's view answers; None if one does."""
    if busy:
        return _error(429, str(TOO_MANY[1]))
    if not user.is_authenticated:
        response = _error(401, gettext("log in first, or send an API token as `Authorization: Bearer <token>`"))
        response.headers["WWW-Authenticate"] = "Bearer"
        return response
    if request.method not in ("GET", "HEAD"):
        return _error(405, gettext("method must be GET; got %(method)s") % {"method": request.method})
    return None


def user_of(request: HttpRequest) -> tuple[Asker, bool]:
    """Return the user of a request, by session or API token, and whether its address tried too many wrong tokens."""
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() not in SCHEMES:
        return request.user, False
    address, secret, now_s = request.META.get("REMOTE_ADDR", ""), secret.strip(), time.monotonic()
    with _LOCK:
        if _GUESSES.known_wrong(address, secret, now_s):
            return AnonymousUser(), False
        if _GUESSES.too_many(address, secret, now_s):
            return AnonymousUser(), True
    user = ApiToken.user_of(secret)
    with _LOCK:
        _GUESSES.learn(address, secret, user is not None, now_s)
    return user or AnonymousUser(), False


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)
