"""Who may read metrics and figures: staff, by their session or by an API token.

There is no way without either: a proxy on this machine makes every request look as if it came from this machine.
"""

import threading
import time
from collections.abc import Callable
from functools import wraps

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse

from webapp.models import ApiToken
from webapp.rights.access import Asker
from webapp.rights.guesses import TOO_MANY, Guesses

SCHEMES = ("token", "bearer")
NOT_STAFF = "metrics are for staff: send the API token of a staff user as `Authorization: Bearer <token>`\n"
_GUESSES, _LOCK = Guesses(), threading.Lock()

View = Callable[[HttpRequest], HttpResponse]


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
