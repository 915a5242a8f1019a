"""The views of the metrics, of the page for operators, and of the figures that the page fetches."""

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import choose_encoder

from webapp.bus.redis import NOT_NOW, client
from webapp.models import Query
from webapp.operations.figures import collected
from webapp.operations.metrics import registry_of
from webapp.operations.past import past
from webapp.operations.troubles import troubles
from webapp.pages.static import modules
from webapp.rights.access import rights_of
from webapp.rights.guards import for_staff

MODULE = "js/operations/main.js"


@never_cache
@require_safe
@for_staff
def metrics(request: HttpRequest) -> HttpResponse:
    """Respond with all metrics, in the format that Prometheus asks for."""
    encode, content_type = choose_encoder(request.headers.get("Accept", ""))
    return HttpResponse(encode(registry_of(collected())), content_type=content_type)


@never_cache
@require_safe
@login_required
def page(request: HttpRequest) -> HttpResponse:
    """Show the page for operators to staff."""
    if not request.user.is_staff:
        raise PermissionDenied
    return render(request, "operations.html", {"module": MODULE, "scripts": modules(MODULE)})


@never_cache
@require_safe
@for_staff
def figures(request: HttpRequest) -> JsonResponse:
    """Respond with the present figures, what is wrong, and the past since the time `since_us`."""
    since = request.GET.get("since_us", "0")
    if not since.isdigit():
        return JsonResponse(
            {"error": gettext("since_us must be microseconds since 1970; got %(since)s") % {"since": f"{since!r:.80}"}},
            status=400,
        )
    found, seen = collected(), rights_of(request.user).queries()
    try:
        entries = past(client(), int(since))
    except NOT_NOW:
        entries = []
    return JsonResponse(
        {"now": found, "names": _names(found, seen), "troubles": troubles(found, seen), "past": entries}
    )


def _names(found: dict[str, Any], seen: QuerySet[Query]) -> dict[int, str]:
    """Return the names of the queries among the figures, those that the user sees, by number."""
    numbers = {told["query"] for space in found["spaces"].values() for told in space["queries"]}
    return dict(seen.filter(pk__in=numbers).values_list("pk", "name"))
