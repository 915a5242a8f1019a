"""Middleware: what pages may load, secure cookies, and the page for too many log-ins at once."""

import secrets

from django.core.exceptions import PermissionDenied
from django.shortcuts import render
from django.utils.translation import gettext

from webapp.passwords import TooManyAtOnce
from webapp.permissions import rule_of

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


class ContentSecurityPolicy:
    """Send a Content-Security-Policy.

    It sets two attributes of the request: `csp_nonce`, which allows the inline script that starts the Leaflet map, and
    `csp_images`, a list to which a view may add sources of images.
    """

    def __init__(self, get_response) -> None:
        self.get_response = get_response

    def __call__(self, request):
        """Answer a request."""
        request.csp_nonce, request.csp_images = secrets.token_urlsafe(16), []
        response = self.get_response(request)
        images = "".join(f" {source}" for source in request.csp_images)
        policy = POLICY.format(nonce=request.csp_nonce, images=images)
        response.headers.setdefault("Content-Security-Policy", policy)
        return response


class DeclaredAccess:
    """Refuse every address for which `webapp.permissions` has no rule, so that none is open by mistake.

    The rule itself is kept by the view: it knows in which form to refuse.
    """

    def __init__(self, get_response) -> None:
        self.get_response = get_response

    def __call__(self, request):
        """Answer a request."""
        return self.get_response(request)

    def process_view(self, request, *_):
        """Raise PermissionDenied where no rule is declared."""
        if rule_of(request.resolver_match) is None:
            raise PermissionDenied(
                gettext("there is no rule who may open %(route)s") % {"route": request.resolver_match.route}
            )


class SecureCookies:
    """Mark cookies that are set over TLS as secure, so that browsers send them over TLS only."""

    def __init__(self, get_response) -> None:
        self.get_response = get_response

    def __call__(self, request):
        """Answer a request."""
        response = self.get_response(request)
        if request.is_secure():
            for cookie in response.cookies.values():
                cookie["secure"] = True
        return response


class BusyPage:
    """Answer with status 503 when too many users log in at once, instead of letting everybody wait for minutes."""

    def __init__(self, get_response) -> None:
        self.get_response = get_response

    def __call__(self, request):
        """Answer a request."""
        return self.get_response(request)

    def process_exception(self, request, exception):
        """Return the busy page if a view could not check a password."""
        if isinstance(exception, TooManyAtOnce):
            return render(request, "registration/busy.html", status=503)
        return None
