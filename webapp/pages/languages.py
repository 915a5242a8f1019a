"""The user's language: of pages, of the page's JavaScript, and of what a websocket is told.

A browser says its language by the cookie that `set_language` sets, else by its header ``Accept-Language``.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.dispatch import receiver
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import formats, translation
from django.views.decorators.gzip import gzip_page
from django.views.i18n import JavaScriptCatalog, set_language

from streaming import language
from webapp.consumers.asgi import Application, Receive, Scope, Send
from webapp.models.languages import UserLanguage, keep_language

DOMAIN = "djangojs"
YEAR_S = 365 * 24 * 3600
_catalogue = JavaScriptCatalog.as_view(domain=DOMAIN, packages=["webapp"])


@lru_cache
def version(language: str) -> str | None:
    """Return a hash of the texts for the page's JavaScript in a language; None if there are none, as for English."""
    if language not in dict(settings.LANGUAGES):
        return None
    compiled = Path(settings.LOCALE_PATHS[0], translation.to_locale(language), "LC_MESSAGES", f"{DOMAIN}.mo")
    return hashlib.sha256(compiled.read_bytes()).hexdigest()[:12] if compiled.is_file() else None


@gzip_page
def catalogue(request: HttpRequest, language: str, hashed: str) -> HttpResponseBase:
    """Respond with the texts for the page's JavaScript. The address names their version, so they are kept for ever."""
    if hashed != version(language):
        raise Http404(f"the catalogue must be one of the present texts; got {language} {hashed}")
    with translation.override(language):
        response = _catalogue(request)
    response.headers["Cache-Control"] = f"public, max-age={YEAR_S}, immutable"
    return response


def texts(request: HttpRequest) -> dict[str, str]:
    """Return, for all templates, the address of the texts for the page's JavaScript; nothing in English."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    hashed = version(language)
    return {"catalogue": reverse("catalogue", args=[language, hashed]) if hashed else ""}


def choose(request: HttpRequest) -> HttpResponse:
    """Set the language of the browser by a cookie, and keep the choice of a user for mails and other alarms."""
    response = set_language(request)
    if request.method == "POST" and request.user.is_authenticated:
        keep_language(request.user, request.POST.get("language", ""))
    return response


@receiver(user_logged_in)
def _keep_language(request: HttpRequest | None, user: User, **_: object) -> None:
    """Keep the language that somebody chose before they logged in; of a user who never chose, that of the browser."""
    if request is None:
        return
    if chosen := request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME):
        keep_language(user, chosen)
    elif not UserLanguage.objects.filter(user=user).exists():
        keep_language(user, translation.get_language_from_request(request))


def speak() -> None:
    """Translate the texts of `streaming` in this process, as those of this application."""
    language.use(translation, _marks)


def _marks() -> tuple[str, ...]:
    """Return what stands between thousands and before decimals in the language of the request."""
    return tuple(formats.get_format(name) for name in ("THOUSAND_SEPARATOR", "DECIMAL_SEPARATOR"))


class Language:
    """ASGI middleware that speaks the language of a connection's browser in all that the connection does."""

    def __init__(self, app: Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a connection on."""
        with translation.override(language_of(scope)):
            return await self.app(scope, receive, send)


def language_of(scope: dict) -> str:
    """Return the language that a browser asks for, by the cookie of its choice or by its header.

    Examples
    --------
    >>> language_of({"headers": [(b"accept-language", b"de-AT,en;q=0.5")]})
    'de'
    >>> language_of({"headers": [(b"accept-language", b"de")], "cookies": {settings.LANGUAGE_COOKIE_NAME: "en"}})
    'en'
    """
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    request.META["HTTP_ACCEPT_LANGUAGE"] = dict(scope["headers"]).get(b"accept-language", b"").decode("latin-1")
    return translation.get_language_from_request(request)
