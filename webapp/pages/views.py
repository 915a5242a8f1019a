"""The views of the map, the health checks, the plan schema and one-time log-ins."""

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from streaming.plans.schema import plan_schema
from webapp.models import LoginLink, ShareLink
from webapp.models.spaces import EARTH
from webapp.operations.health import Health
from webapp.pages import coast
from webapp.pages.maps import base_maps, image_sources
from webapp.pages.middleware import PolicedRequest
from webapp.pages.sockets import SHARED_PATH, SOCKET_PATH
from webapp.pages.static import modules, scripts, style

HEALTH = Health()
SHARED_MODULE = "js/shared/main.js"


@never_cache
@login_required
def map_page(request: PolicedRequest) -> HttpResponse:
    """Show the map to a user who has logged in."""
    request.csp_images = image_sources()
    page = {
        "user": request.user.get_username(),
        "staff": request.user.is_staff,
        "websocket": f"/{SOCKET_PATH}",
        "csrf": get_token(request),
        "admin": reverse("admin:index"),
        "logout": reverse("logout"),
        "upload_bytes": settings.LAYER_UPLOAD_BYTES,
        "base_maps": base_maps(),
        "regions": reverse("admin:webapp_space_regions", args=[EARTH]) if request.user.is_staff else "",
        "add_base_map": reverse("admin:webapp_basemap_add") if request.user.is_staff else "",
    }
    shown = {"page": page, "scripts": scripts(), "style": style(), "coast": coast.address()}
    return render(request, "map.html", shown)


@never_cache
def shared(request: PolicedRequest, secret: str) -> HttpResponse:
    """Show the map of a share link to anybody who has it; status 410 if it does not work any more."""
    link = ShareLink.of(secret)
    if link is None:
        return render(request, "registration/link_ended.html", status=410)
    request.csp_images = image_sources()
    page = {
        "websocket": f"/{SHARED_PATH.split('<')[0]}{secret}/",
        "address": link.address,
        "expires": link.expires.isoformat(),
        # The tiles of a base map that is a file are for users.
        "base_maps": [base for base in base_maps() if "format" not in base],
    }
    context = {"page": page, "name": link.name, "module": SHARED_MODULE, "scripts": modules(SHARED_MODULE)}
    response = render(request, "shared.html", context)
    response.headers["X-Robots-Tag"] = "noindex"
    return response


def schema_of_plans(request: HttpRequest) -> JsonResponse:
    """Respond with the JSON Schema of plans."""
    return JsonResponse(plan_schema(), content_type="application/schema+json")


@never_cache
def alive(request: HttpRequest) -> JsonResponse:
    """Respond that this process is alive."""
    return JsonResponse({"status": "ok"})


@never_cache
def health(request: HttpRequest) -> JsonResponse:
    """Respond whether all of Lookout works; if not, with status 503 and the reasons."""
    reasons = HEALTH.reasons()
    return JsonResponse({"status": "down" if reasons else "ok", "reasons": reasons}, status=503 if reasons else 200)


@never_cache
def login_once(request: HttpRequest, secret: str) -> HttpResponse:
    """Log a user in by a one-time link; status 410 if the link is spent."""
    user = LoginLink.spend(secret)
    if user is None:
        return render(request, "registration/link_spent.html", status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("map")
