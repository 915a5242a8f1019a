"""The language of a user: the page's catalogue of strings, and the language of a websocket.

References
----------
docs/translating.md
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import translation
from django.utils.cache import patch_cache_control
from django.views.i18n import JavaScriptCatalog

# Browsers keep a catalogue for a year: its address changes with it.
KEPT_S = 365 * 24 * 3600


@lru_cache
def _version(language):
    """Return a hash of the page's catalogue in a language; None for the language of the sources, which needs none."""
    locale = translation.to_locale(language)
    compiled = Path(apps.get_app_config("webapp").path) / "locale" / locale / "LC_MESSAGES" / "djangojs.mo"
    return hashlib.sha256(compiled.read_bytes()).hexdigest()[:16] if compiled.is_file() else None


def page_strings(_: HttpRequest) -> dict[str, Any]:
    """Return what each template knows of languages: `page_strings`, the address of the page's catalogue, or None."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    version = _version(language)
    return {"page_strings": version and reverse("page-strings", args=[language, version])}


def catalogue(request: HttpRequest, language: str, version: str) -> HttpResponse:
    """Answer with the page's strings in a language, as a script.

    Raises
    ------
    Http404
        If there is no such language, or the catalogue is of another version.
    """
    if language not in dict(settings.LANGUAGES) or _version(language) != version:
        raise Http404(f"no catalogue {version} of {language}")
    with translation.override(language):
        answer = JavaScriptCatalog.as_view(packages=["webapp"])(request)
    patch_cache_control(answer, public=True, max_age=KEPT_S, immutable=True)
    return answer


def of_scope(scope: dict[str, Any]) -> str:
    """Return the language of a websocket: that of the cookie, else the first one that the browser prefers and we have."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    accepted = dict(scope.get("headers", ())).get(b"accept-language", b"")
    request.META["HTTP_ACCEPT_LANGUAGE"] = accepted.decode("latin-1")
    return translation.get_language_from_request(request)
