"""Middleware: what pages may load, secure cookies, and the page for too many log-ins at once."""

import secrets
from collections.abc import Callable

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from webapp.machine.passwords import TooManyAtOnce
from webapp.rights.permissions import rule_of

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'nonce-{nonce}'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob: https://tile.openstreetmap.org https://*.tile.openstreetmap.org{images}",
        "connect-src 'self' ws: wss:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


GetResponse = Callable[[HttpRequest], HttpResponse]


class PolicedRequest(HttpRequest):
    """A request behind `ContentSecurityPolicy`. An annotation only: Django makes plain requests."""

    csp_nonce: str
    csp_images: list[str]


class ContentSecurityPolicy:
    """Send a Content-Security-Policy.

    It sets two attributes of the request: `csp_nonce`, which allows the inline script that starts the Leaflet map, and
    `csp_images`, a list to which a view may add sources of images.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: PolicedRequest) -> HttpResponse:
        """Answer a request."""
        request.csp_nonce, request.csp_images = secrets.token_urlsafe(16), []
        response = self.get_response(request)
        images = "".join(f" {source}" for source in request.csp_images)
        policy = POLICY.format(nonce=request.csp_nonce, images=images)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response


class DeclaredAccess:
    """Refuse every address for which `webapp.rights.permissions` has no rule, so that none is open by mistake.

    The rule itself is kept by the view: it knows in which form to refuse.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: object) -> None:
        """Raise PermissionDenied where no rule is declared."""
        match = request.resolver_match
        assert match is not None  # Django resolves the address before
        if rule_of(match) is None:
            raise PermissionDenied(gettext("there is no rule who may open %(route)s") % {"route": match.route})


class SecureCookies:
    """Mark cookies that are set over TLS as secure, so that browsers send them over TLS only."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
        response = self.get_response(request)
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response


class BusyPage:
    """Answer with status 503 when too many users log in at once, instead of letting everybody wait for minutes."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return the busy page if a view could not check a password."""
        if isinstance(exception, TooManyAtOnce):
            return render(request, "registration/busy.html", status=503)
        return None
