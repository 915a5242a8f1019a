"""Base maps for the page, and the tiles of base maps that are files."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext

from webapp.machine.tiles import GZIPPED, TYPES, BrokenMap, map_format, tile_of
from webapp.models import BaseMap

CACHED_S = 3600


def base_maps() -> list[dict]:
    """Return the added base maps as dicts for the page; leave out those whose file is missing or broken."""
    documents = []
    for base in BaseMap.objects.all():
        document = {
            "name": base.name,
            "kind": base.kind,
            "url": base.address,
            "layers": base.layers,
            "attribution": base.attribution,
            "min_zoom": base.min_zoom,
            "max_zoom": base.max_zoom,
            "default": base.default,
        }
        if base.kind == BaseMap.FILE:
            try:
                document["format"] = map_format(settings.MAPS_DIR, base.address)
            except BrokenMap:
                continue
            document["url"] = reverse("map-tile", args=[base.pk, 0, 0, 0]).removesuffix("0/0/0") + "{z}/{x}/{y}"
        documents.append(document)
    return documents


def image_sources() -> list[str]:
    """Return the hosts of base map images, as sources for a Content-Security-Policy."""
    return sorted({base.image_source for base in BaseMap.objects.all()} - {""})


def tile(request: HttpRequest, number: int, z: int, x: int, y: int) -> HttpResponse:
    """Respond with a tile of a base map that is a file; status 204 where the file has no such tile."""
    if not request.user.is_authenticated:
        return JsonResponse({"error": gettext("log in first")}, status=401)
    base = BaseMap.objects.filter(pk=number, kind=BaseMap.FILE).first()
    if base is None:
        return JsonResponse(
            {
                "error": gettext("map must be the number of a base map that is a file; got %(number)s")
                % {"number": number}
            },
            status=404,
        )
    if z > 30 or max(x, y) >= 2**z:
        return JsonResponse(
            {"error": gettext("a tile must be one of its zoom; got %(z)s/%(x)s/%(y)s") % {"z": z, "x": x, "y": y}},
            status=404,
        )
    try:
        found = tile_of(settings.MAPS_DIR, base.address, z, x, y)
        kind = TYPES[map_format(settings.MAPS_DIR, base.address)]
    except BrokenMap as error:
        return JsonResponse({"error": str(error)}, status=404)
    answer = HttpResponse(found, content_type=kind) if found else HttpResponse(status=204)
    if found and found.startswith(GZIPPED):
        answer.headers["Content-Encoding"] = "gzip"
    answer.headers["Cache-Control"] = f"private, max-age={CACHED_S}"
    return answer
