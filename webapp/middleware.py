"""What every page is allowed to load, how its cookies travel, and what it says where too many log in at once."""

import secrets

from django.shortcuts import render

from webapp.passwords import TooManyAtOnce

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

    `request.csp_nonce` allows the inline script that starts the Leaflet map; `request.csp_images` lists further hosts
    of images.
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


class SecureCookies:
    """Let cookies that are set over TLS travel over TLS alone."""

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
    """Say that too many log in at once, instead of letting everybody wait for minutes."""

    def __init__(self, get_response) -> None:
        self.get_response = get_response

    def __call__(self, request):
        """Answer a request."""
        return self.get_response(request)

    def process_exception(self, request, exception):
        """Answer in place of a view that could not check a password."""
        if isinstance(exception, TooManyAtOnce):
            return render(request, "registration/busy.html", status=503)
        return None
