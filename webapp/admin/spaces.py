"""Spaces in the admin: their dimensions, and the state of their engines."""

import time
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.keys import LogNames
from streaming.redis_client import read_hash
from streaming.redis_memory import LIVE_SHARE, share_of
from webapp.admin.regions import answer_regions
from webapp.bus.redis import NOT_NOW, client
from webapp.hub.reports import engine_status, lives
from webapp.models import Space
from webapp.models.spaces import EARTH
from webapp.words.stored_words import retold

UNKNOWN = "—"


def engine_of(space: str) -> dict:
    """Return the status of a space's engine, and whether a second engine stands by; empty without Redis."""
    try:
        report = read_hash(client(), LogNames(space).engine)
    except NOT_NOW:
        return {}
    now_us = time.time_ns() // 1000
    state = (report.get(b"refused") or report.get(b"broken") or b"").decode()
    return engine_status(report, now_us) | {"standby": lives(report, b"standby_us", now_us), "state": state}


def redis_share() -> str:
    """Return how full Redis is, in words; a dash if it does not answer."""
    try:
        share = share_of(client().info("memory"))
    except NOT_NOW:
        return UNKNOWN
    return f"{share:.0%}" + (gettext(", so feeds wait") if share > LIVE_SHARE else "")


@admin.register(Space)
class SpaceAdmin(admin.ModelAdmin):
    """Spaces with their engines."""

    list_display = ("name", "title", "dimensions", "in_use", "engine", "standby", "batch", "backlog", "memory")
    search_fields = ("name", "title")
    actions = None
    readonly_fields = ("in_use", "engine", "standby", "batch", "backlog", "memory", "state")
    fieldsets = (
        (None, {"fields": ("name", "title", "definition", "partitioner")}),
        (_("Engine"), {"fields": ("in_use", "engine", "standby", "batch", "backlog", "memory", "state")}),
    )

    change_form_template = "admin/webapp/space/change_form.html"

    def get_urls(self) -> list[URLPattern]:
        """Add the page of a space's regions."""
        page = self.admin_site.admin_view(lambda request, name: answer_regions(self, request, name))
        return [path("<str:name>/regions/", page, name="webapp_space_regions"), *super().get_urls()]

    def get_readonly_fields(self, request: HttpRequest, obj: Space | None = None) -> tuple[str, ...]:
        """Make the name read-only once it is saved, and the definition of the built-in space, too."""
        fixed = ("name", "definition") if obj and obj.name == EARTH else ("name",) if obj else ()
        return (*self.readonly_fields, *fixed)

    def has_delete_permission(self, request: HttpRequest, obj: Space | None = None) -> bool:
        """Forbid to delete the built-in space."""
        return super().has_delete_permission(request, obj) and (obj is None or obj.name != EARTH)

    @admin.display(description=_("dimensions"))
    def dimensions(self, space: Space) -> str:
        """The names and units of the dimensions."""
        return ", ".join(f"{d.name} [{d.unit}]" if d.unit else d.name for d in space.parsed.dimensions)

    @admin.display(description=_("in use by"))
    def in_use(self, space: Space) -> str:
        """What uses the space, so that its definition cannot change."""
        return space.users() or "nothing"

    @admin.display(description=_("engine"), boolean=True)
    def engine(self, space: Space) -> bool | None:
        """Whether the engine has reported lately."""
        return engine_of(space.name).get("alive")

    @admin.display(description=_("second engine"), boolean=True)
    def standby(self, space: Space) -> bool | None:
        """Whether another engine can take over at once."""
        return engine_of(space.name).get("standby")

    @admin.display(description=_("batches"))
    def batch(self, space: Space) -> Any:
        """The number of the newest micro-batch."""
        return _or_unknown(engine_of(space.name).get("batch"))

    @admin.display(description=_("blocks not yet committed"))
    def backlog(self, space: Space) -> Any:
        """How many blocks the engine has not committed yet."""
        return _or_unknown(engine_of(space.name).get("backlog"))

    @admin.display(description=_("Redis is full to"))
    def memory(self, space: Space) -> str:
        """How full Redis is, which all spaces share."""
        return redis_share()

    @admin.display(description=_("problems of the state"))
    def state(self, space: Space) -> str:
        """What was broken when the engine started last, or why it refuses to start."""
        return retold(engine_of(space.name).get("state") or gettext("none"))


def _or_unknown(value: Any) -> Any:
    return UNKNOWN if value is None else value
