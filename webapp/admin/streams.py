"""Streams in the admin: their source, their health, and starting and stopping them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.keys import HEALTH_KEY
from streaming.spaces import EARTH
from webapp.admin.sketch_fields import cost_in_words, sketch_fields
from webapp.admin.stream_form import KindSelect, source_fields, stream_form
from webapp.admin.trial import answer_trial
from webapp.bus.redis import NOT_NOW, client
from webapp.history.upkeep import extent_in_words
from webapp.models import Stream
from webapp.words.stored_words import retold

if TYPE_CHECKING:
    from django.contrib.admin.options import _FieldsetSpec

UNKNOWN = "—"
_SKETCH = _(
    "A summary of all elements, by place, time and values, that answers questions without keeping the elements."
)
# A feed out of order has a few stale elements; a larger share comes from wrong times.
STALE_SHARE = 0.01


def health_of(name: str) -> dict:
    """Return the gateway's counters of a stream; empty if there are none or Redis does not answer."""
    try:
        counters = client().hget(HEALTH_KEY, name)
    except NOT_NOW:
        return {}
    return json.loads(counters) if counters else {}


def stale_hint(health: dict) -> str:
    """Return a hint for a stream with a share of stale elements above `STALE_SHARE`; otherwise an empty text."""
    stale, elements = health.get("stale", 0), health.get("elements", 0)
    if stale <= STALE_SHARE * elements:
        return ""
    return gettext(" (%(share)s): are its times right, and does only one feed name these objects?") % {
        "share": f"{min(stale / max(elements, 1), 1):.0%}"
    }


def _time(microseconds: float | None) -> str:
    if not microseconds:
        return UNKNOWN
    return f"{datetime.fromtimestamp(microseconds / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"


@admin.register(Stream)
class StreamAdmin(admin.ModelAdmin):
    """Streams with their health."""

    list_display = (
        *("name", "title", "enabled", "state", "rate", "malformed", "stale", "stored", "space", "transport", "decoder"),
    )
    list_filter = ("enabled", "stored", "space", "transport", "decoder")
    search_fields = ("name", "title")
    actions = ("start", "stop")
    readonly_fields = ("kept", "sketch_cost", "state", "hint", "counters", "malformed_input")
    change_form_template = "admin/webapp/stream/change_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: Stream | None = None) -> "_FieldsetSpec":
        """Return the parts of the form. It has the options of all kinds; a script hides those of kinds not chosen."""
        return (
            (None, {"fields": ("name", "space", "title", "icon", "enabled", "ttl_s", "max_ahead_s", "max_age_s")}),
            (gettext("Source"), {"fields": source_fields(), "classes": ("source",)}),
            (gettext("History"), {"fields": ("stored", "retention_s", "kept")}),
            (gettext("Sketch"), {"fields": (*sketch_fields(), "sketch_cost"), "description": _SKETCH}),
            *(((gettext("Health"), {"fields": ("state", "hint", "counters", "malformed_input")}),) if obj else ()),
        )

    def get_form(
        self, request: HttpRequest, obj: Stream | None = None, change: bool = False, **kwargs: Any
    ) -> type[forms.ModelForm]:
        """Return the form with a field for every option."""
        return super().get_form(request, obj, change, form=stream_form(), **kwargs)

    def get_urls(self) -> list[URLPattern]:
        """Add the URL of the *Test* button."""
        test = self.admin_site.admin_view(lambda request: answer_trial(self, request))
        return [path("test/", test, name="webapp_stream_test"), *super().get_urls()]

    def get_readonly_fields(self, request: HttpRequest, obj: Stream | None = None) -> tuple[str, ...]:
        """Make name and space read-only once they are saved."""
        return (*self.readonly_fields, "name", "space") if obj else self.readonly_fields

    def formfield_for_dbfield(self, db_field: models.Field, request: HttpRequest, **kwargs: Any) -> forms.Field | None:
        """Offer the available transports and decoders."""
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and db_field.name in ("transport", "decoder"):
            field.widget = KindSelect(db_field.name)
        return field

    @admin.action(description=_("Start selected streams"))
    def start(self, request: HttpRequest, queryset: QuerySet[Stream]) -> None:
        """Switch streams on."""
        self._switch(request, queryset, True)

    @admin.action(description=_("Stop selected streams"))
    def stop(self, request: HttpRequest, queryset: QuerySet[Stream]) -> None:
        """Switch streams off."""
        self._switch(request, queryset, False)

    def _switch(self, request: HttpRequest, queryset: QuerySet[Stream], enabled: bool) -> None:
        for stream in queryset:
            stream.enabled = enabled
            stream.save()  # one by one, since saving publishes each stream
        done = gettext("%(count)s streams started") if enabled else gettext("%(count)s streams stopped")
        self.message_user(request, done % {"count": len(queryset)}, messages.SUCCESS)

    def get_deleted_objects(
        self, objs: Sequence[Stream] | QuerySet[Stream], request: HttpRequest
    ) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Say on the confirmation page that the history of the streams is deleted, too."""
        deleted, counts, missing, protected = super().get_deleted_objects(objs, request)
        kept = [
            gettext("The history of %(name)s: %(words)s") % {"name": stream.name, "words": words}
            for stream in objs
            if (words := extent_in_words(stream))
        ]
        return [*deleted, *kept], counts, missing, protected

    @admin.display(description=_("what is stored"))
    def kept(self, stream: Stream) -> str:
        """What the history stores of the stream on disk."""
        return extent_in_words(stream) or gettext("nothing yet")

    @admin.display(description=_("what it costs"))
    def sketch_cost(self, stream: Stream) -> str:
        """How much memory the sketch takes at the most."""
        return cost_in_words(stream.sketch, stream.space.parsed if stream.space_id else EARTH)

    @admin.display(description=_("state"))
    def state(self, stream: Stream) -> str:
        """The state of the stream in the gateway, and its error."""
        health = health_of(stream.name)
        error = health.get("error")
        state = retold(health.get("state", UNKNOWN))
        return f"{state}: {retold(error)}" if error else state

    @admin.display(description=_("hint"))
    def hint(self, stream: Stream) -> str:
        """What is probably wrong with the stream's definition."""
        return retold(health_of(stream.name).get("hint") or UNKNOWN)

    @admin.display(description=_("elements/s"))
    def rate(self, stream: Stream) -> Any:
        """Elements per second."""
        return health_of(stream.name).get("elements_per_s", UNKNOWN)

    @admin.display(description=_("malformed"))
    def malformed(self, stream: Stream) -> int:
        """How many pieces of input could not be decoded into elements."""
        return sum(health_of(stream.name).get("malformed", {}).values())

    @admin.display(description=_("stale"))
    def stale(self, stream: Stream) -> str:
        """How many elements were older than the newest known of their object, with a warning sign if they are many."""
        health = health_of(stream.name)
        return f"{health.get('stale', UNKNOWN)}{' ⚠' if stale_hint(health) else ''}"

    @admin.display(description=_("counters"))
    def counters(self, stream: Stream) -> str:
        """The gateway's counters since its start."""
        health = health_of(stream.name)
        rows = [
            (gettext("elements"), health.get("elements", UNKNOWN)),
            (gettext("elements/s"), health.get("elements_per_s", UNKNOWN)),
            (gettext("bytes"), health.get("bytes", UNKNOWN)),
            (gettext("lost (datagrams that came faster than they were taken)"), health.get("lost", UNKNOWN)),
            (gettext("merged (replaced by newer ones under overload)"), health.get("merged", UNKNOWN)),
            (
                gettext("stale (older than the newest known of their object)"),
                f"{health.get('stale', UNKNOWN)}{stale_hint(health)}",
            ),
            (gettext("last element"), _time(health.get("last_us"))),
        ]
        return format_html("<table>{}</table>", format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", rows))

    @admin.display(description=_("malformed input"))
    def malformed_input(self, stream: Stream) -> str:
        """Counts by reason, each with the last offending bytes."""
        health = health_of(stream.name)
        last = health.get("last_malformed", {})
        rows = [
            (retold(reason), count, _time(last.get(reason, {}).get("at_us")), last.get(reason, {}).get("sample", ""))
            for reason, count in sorted(health.get("malformed", {}).items())
        ]
        if not rows:
            return gettext("none")
        names = [gettext("reason"), gettext("count"), gettext("last"), gettext("last offending bytes")]
        head = format_html("<tr>{}</tr>", format_html_join("", "<th>{}</th>", ((name,) for name in names)))
        body = format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>", rows)
        return format_html("<table>{}{}</table>", head, body)
