"""The *Test* button: read some elements with a stream's transport and decoder before the stream is saved."""

import json
import subprocess
import threading
from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, JsonResponse
from django.utils.translation import gettext

from streaming.confined import WAITED_FOR, command
from streaming.spaces import space_document
from webapp.admin.stream_form import field_name
from webapp.models import Space, Stream
from webapp.models.spaces import EARTH

# A trial reads for READ_S; its process is killed if the whole trial takes longer than END_S.
READ_S, END_S = 5.0, 20.0
_TRIALS = threading.BoundedSemaphore(2)
_UNCHECKED = {"name", "title", "icon", "enabled", "ttl_s", "max_age_s", "stored", "retention_s", "space"}


def answer_trial(model_admin: admin.ModelAdmin, request: HttpRequest) -> HttpResponse:
    """Respond with the first elements from a form's transport and decoder, or with the form's errors; save nothing."""
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    if not (model_admin.has_add_permission(request) or model_admin.has_change_permission(request)):
        raise PermissionDenied
    form = model_admin.get_form(request, None)(request.POST, instance=Stream(name="test", title="Test"))
    # Errors in fields that do not affect the test, such as the name, do not matter yet.
    errors = {name: list(map(str, told)) for name, told in form.errors.items() if name not in _UNCHECKED}
    if errors:
        return JsonResponse({"errors": errors})
    space = Space.objects.filter(pk=request.POST.get("space") or EARTH).first()
    if space is None:
        return JsonResponse({"errors": {"space": [gettext("the space must be one that there is")]}})
    definition = form.instance.definition()
    if not _TRIALS.acquire(blocking=False):
        return JsonResponse({"error": gettext("two tests run already; try again in some seconds"), "shown": []})
    try:
        told = run_trial(definition["transport"], definition["decoder"], space)
        return JsonResponse(told | {"proposed": _fields(form, told.get("proposed") or {})})
    finally:
        _TRIALS.release()


def _fields(form: forms.ModelForm, options: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the fields of the form that options of its decoder change, each with its label and its new text."""
    told = []
    for option, value in options.items():
        name = field_name("decoder", form.instance.decoder, option)
        field, given = form.fields[name], form.cleaned_data.get(name)
        if value != (field.initial if given in (None, "") else given):
            told.append({"name": name, "label": str(field.label), "value": str(field.prepare_value(value))})
    return told


def run_trial(transport: Mapping[str, Any], decoder: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Return what a transport and a decoder give within `READ_S`, run in a separate process."""
    access = settings.FEED_ACCESS
    job = {
        "transport": transport,
        "decoder": decoder,
        "space": space_document(space.parsed),
        "seconds": READ_S,
        "home": str(access.home),
        "folders": list(map(str, access.folders)),
        "hosts": access.hosts,
    }
    words = command(WAITED_FOR, "streaming.gateway.trial")
    try:
        done = subprocess.run(
            words, input=json.dumps(job), cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=END_S
        )
    except subprocess.TimeoutExpired:
        return {
            "error": gettext("a test must end within %(end_s)g s; this one did not") % {"end_s": END_S},
            "shown": [],
        }
    if done.returncode:
        words = done.stderr.strip().splitlines()[-1:]
        return {"error": ": ".join([gettext("a test must come to its end; this one did not"), *words]), "shown": []}
    return json.loads(done.stdout)
