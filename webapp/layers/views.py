"""``/layers/``: layers over HTTP, for users who have logged in. Responses are JSON; errors name rule and value."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any

import orjson
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from streaming.language import thousands
from streaming.layers import ImportOptions
from webapp.layers.drawing import draw, parse_box, parse_zoom
from webapp.layers.imports import Label, begin_upload, cancel_import, forget_refusal
from webapp.layers.looking import look_into
from webapp.layers.versions import changeable, draw_layer_as, edit_features, share_layer
from webapp.models import Layer, RefusedImport
from webapp.models.looks import LAYER_LOOKS, is_look
from webapp.rights.access import rights_of
from webapp.rights.signed_in import SignedInRequest
from webapp.words.refusals import Refused
from webapp.words.stored_words import retold, retold_in
from webapp.words.text import RULE, unsound_text

STATUSES = {"layer": 404, "version": 404, "owner": 403, "conflict": 409, "size": 413, "disk": 507}
MAX_KEYS = 1_000
OPTIONS = tuple(field.name for field in fields(ImportOptions))
MAX_FIND = 100


def answering(**methods: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return a view that calls a function by HTTP method; `Refused` becomes a response with a fitting status."""

    @never_cache
    def view(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return _error(401, gettext("log in first"))
        if request.method not in methods:
            return _error(
                405,
                gettext("method must be one of %(methods)s; got %(method)s")
                % {"methods": ", ".join(methods), "method": request.method},
            )
        try:
            return methods[request.method](request, *arguments, **named)
        except Refused as refused:
            return _error(STATUSES.get(refused.code, 400), refused.message)
        except MultiPartParserError as error:
            return _error(400, gettext("a file must arrive as a whole; got: %(error)s") % {"error": error})

    return wraps(next(iter(methods.values())))(view)


def _error(status: int, message: str) -> JsonResponse:
    return JsonResponse({"error": message}, status=status)


def _layers(request: SignedInRequest) -> HttpResponse:
    refused = [refusal.document() for refusal in RefusedImport.of(request.user)]
    seen = rights_of(request.user).layers()
    return JsonResponse(retold_in({"layers": [layer.document() for layer in seen], "refused": refused}))


def _upload(request: SignedInRequest) -> HttpResponse:
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdigit() and int(length) > settings.LAYER_UPLOAD_BYTES:
        raise Refused(
            "size",
            gettext("a file may have at most %(layer_upload_bytes)s bytes; got %(int)s")
            % {"layer_upload_bytes": thousands(settings.LAYER_UPLOAD_BYTES), "int": thousands(int(length))},
        )
    upload = request.FILES.get("file")
    if upload is None:
        raise Refused("file", _("file must be the file to import, as multipart/form-data; got none"))
    form = {field: request.POST.get(field, "").strip() for field in ("name", "title", "space", *OPTIONS)}
    _check_sound(form)
    team = _team(request.POST.get("team") or None)
    wanted = ImportOptions(**{field: form[field] for field in OPTIONS})
    if "look" in request.GET:
        seen = look_into(request.user, upload, wanted)
        return JsonResponse(seen | {"notes": [retold(note) for note in seen["notes"]]})
    layer = begin_upload(request.user, upload, Label(form["name"], form["title"], form["space"], team), wanted)
    return JsonResponse({"layer": layer.document()}, status=202)


def _cancel(request: SignedInRequest, name: str) -> HttpResponse:
    return JsonResponse({"layer": cancel_import(request.user, name).document()})


def _one(request: SignedInRequest, name: str) -> HttpResponse:
    return JsonResponse(retold_in({"layer": _known(name, request.user).document()}))


def _drop(request: SignedInRequest, name: str) -> HttpResponse:
    if not Layer.objects.filter(name=name).exists() and forget_refusal(request.user, name):
        return HttpResponse(status=204)
    with transaction.atomic():
        changeable(request.user, name).delete()
    return HttpResponse(status=204)


def _features(request: SignedInRequest, name: str) -> HttpResponse:
    layer, asked = _known(name, request.user), request.GET
    version = asked.get("version") or str(layer.version or "")
    if not (version.isascii() and version.isdigit()):
        raise Refused(
            "fields",
            gettext("version must be the number of a version of layer %(name)s; got %(version)s")
            % {"name": f"{name!r}", "version": f"{version!r:.20}"},
        )
    box = parse_box(asked["bbox"]) if asked.get("bbox") else None
    zoom = parse_zoom(asked["zoom"]) if asked.get("zoom") else None
    keys = asked.getlist("key")[:MAX_KEYS] or None
    find = asked.get("find", "").strip()[:MAX_FIND]
    return HttpResponse(draw(layer, int(version), box, zoom, keys, find), content_type="application/geo+json")


def _edit(request: SignedInRequest, name: str) -> HttpResponse:
    document = _document(request)
    version, upserts, removed = document.get("version"), document.get("upsert", []), document.get("remove", [])
    if not isinstance(version, int) or isinstance(version, bool):
        raise Refused(
            "fields",
            gettext("version must be the number of the version that is edited; got %(version)s")
            % {"version": f"{version!r:.80}"},
        )
    for field, value in (("upsert", upserts), ("remove", removed)):
        if not isinstance(value, list) or len(value) > settings.LAYER_EDIT_FEATURES:
            raise Refused(
                "fields",
                gettext("%(field)s must be a list of at most %(layer_edit_features)s; got %(value)s")
                % {"field": field, "layer_edit_features": settings.LAYER_EDIT_FEATURES, "value": f"{value!r:.80}"},
            )
    if not all(isinstance(key, str) for key in removed):
        raise Refused(
            "fields", gettext("remove must be a list of keys; got %(removed)s") % {"removed": f"{removed!r:.80}"}
        )
    return JsonResponse({"version": edit_features(request.user, name, version, upserts, removed)})


def _share(request: SignedInRequest, name: str) -> HttpResponse:
    return JsonResponse(
        {"layer": share_layer(request.user, name, _team(_document(request, ("team",)).get("team"))).document()}
    )


def _look(request: SignedInRequest, name: str) -> HttpResponse:
    look = _document(request, ("look",)).get("look")
    if not is_look(look, LAYER_LOOKS):
        raise Refused(
            "look",
            gettext("look must be a whole number from 0 to %(most)s, or null; got %(value)s")
            % {"most": LAYER_LOOKS - 1, "value": f"{look!r:.80}"},
        )
    return JsonResponse({"layer": draw_layer_as(request.user, name, look).document()})


def _team(value: Any) -> int | None:
    """Return the number of a team, given as a number or, in a form, as a text; None for everybody."""
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    if number is not None and (not isinstance(number, int) or isinstance(number, bool)):
        raise Refused(
            "team",
            gettext("team must be the number of a team, or null for everybody; got %(value)s")
            % {"value": f"{value!r:.80}"},
        )
    return number


def _document(request: HttpRequest, fields: Sequence[str] = ("version", "upsert", "remove")) -> dict[str, Any]:
    try:
        document = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise Refused("json", gettext("an edit must be a JSON object; %(error)s") % {"error": error}) from None
    if not isinstance(document, dict) or set(document) - {*fields}:
        raise Refused(
            "json",
            gettext("an edit must be an object with %(fields)s; got %(document)s")
            % {"fields": ", ".join(fields), "document": f"{document!r:.80}"},
        )
    _check_sound(document)
    return document


def _check_sound(value: Any) -> None:
    if (unsound := unsound_text(value)) is not None:
        raise Refused("fields", gettext("%(rule)s; got %(unsound)s") % {"rule": RULE, "unsound": f"{unsound!r:.80}"})


def _known(name: str, user: User) -> Layer:
    layer = rights_of(user).layers().filter(name=name).first()
    if layer is None:
        refused = RefusedImport.objects.filter(owner=user, name=name).first()
        why = gettext(", whose import was refused: %(reason)s") % {"reason": retold(refused.reason)} if refused else ""
        raise Refused(
            "layer",
            gettext("layer must be the name of a layer; got %(name)s%(why)s") % {"name": f"{name!r}", "why": why},
        )
    return layer


layers = answering(GET=_layers, POST=_upload)
layer = answering(GET=_one, DELETE=_drop)
cancel = answering(POST=_cancel)
share = answering(POST=_share)
look = answering(POST=_look)
features = answering(GET=_features, PATCH=_edit)
