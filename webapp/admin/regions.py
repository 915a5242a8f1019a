"""The regions of a space in the admin: how they are, and to split, merge, move and cut them by hand."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming import spaces
from streaming.operators.region_map import MOST_REGIONS, RegionMap
from webapp.bus import regions
from webapp.bus.redis import NOT_NOW
from webapp.bus.regions import Regions
from webapp.models import Space
from webapp.models.spaces import PARTITIONERS
from webapp.words.refusals import Refused

SPLITTING = [choice for choice in PARTITIONERS if choice[0] != "grid"]
AREA = "area"
# Of the plan on the page, in its own units.
PLAN_WIDTH = 720.0
# How long a change may take until the page is shown again.
WAIT_S = 3.0


class RegionForm(forms.Form):
    """A form that changes the regions of a space."""

    def __init__(self, known: Regions, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        self.offer(known)

    def offer(self, known: Regions) -> None:
        """Fill in what can be chosen now."""
        raise NotImplementedError

    def choose(self, field: str, choices: Sequence[tuple[Any, str]]) -> None:
        """Set the choices of a field."""
        cast("forms.ChoiceField", self.fields[field]).choices = choices

    def run(self, space: spaces.Space, who: str) -> RegionMap:
        """Send the change to the engine; return the map that is to follow."""
        raise NotImplementedError


class SplitForm(RegionForm):
    """Split a region."""

    title = verb = _("Split")
    words = _("Cut a region in two, or in four by a quadtree.")
    region = forms.TypedChoiceField(coerce=int)
    partitioner = forms.ChoiceField(choices=SPLITTING)

    def offer(self, known: Regions) -> None:
        """Fill in what can be chosen now."""
        self.choose("region", _numbered(known.region_map.regions))

    def run(self, space: spaces.Space, who: str) -> RegionMap:
        """Send the change to the engine; return the map that is to follow."""
        return regions.split(space, self.cleaned_data["region"], self.cleaned_data["partitioner"], who)


class MergeForm(RegionForm):
    """Merge two regions that were one before."""

    title = verb = _("Merge")
    words = _("Make one region of two that one cut has made.")
    pair = forms.ChoiceField(label=_("Two sides of one cut"))

    def offer(self, known: Regions) -> None:
        """Fill in what can be chosen now."""
        pairs = known.region_map.siblings
        words = gettext("%(low)s and %(high)s")
        self.choose("pair", [(f"{low} {high}", words % {"low": low, "high": high}) for low, high in pairs])

    def run(self, space: spaces.Space, who: str) -> RegionMap:
        """Send the change to the engine; return the map that is to follow."""
        low, high = self.cleaned_data["pair"].split()
        return regions.merge(space, int(low), int(high), who)


class MoveForm(RegionForm):
    """Give a region to another task."""

    title = verb = _("Move")
    words = _("Give a region to another task, which runs in another process.")
    region = forms.TypedChoiceField(coerce=int)
    task = forms.TypedChoiceField(coerce=int)

    def offer(self, known: Regions) -> None:
        """Fill in what can be chosen now."""
        self.choose("region", _numbered(known.region_map.regions))
        self.choose("task", _numbered(known.tasks))

    def run(self, space: spaces.Space, who: str) -> RegionMap:
        """Send the change to the engine; return the map that is to follow."""
        return regions.move(space, self.cleaned_data["region"], self.cleaned_data["task"], who)


class CutForm(RegionForm):
    """Cut the whole space anew, so that the places of a source are shared evenly."""

    title, verb = _("Cut anew"), _("Cut")
    words = _("Cut the whole space, so that each region gets about as many of some places.")
    partitioner = forms.ChoiceField(choices=PARTITIONERS)
    regions = forms.IntegerField(min_value=1, max_value=MOST_REGIONS)
    source = forms.ChoiceField(label=_("Shared evenly"))
    area = forms.CharField(
        required=False, help_text=_("For an area: draw it on the plan, or give its corners: lo, lo, hi, hi.")
    )

    def offer(self, known: Regions) -> None:
        """Fill in what can be chosen now."""
        self.fields["regions"].initial = known.region_map.regions
        self.choose("source", _sources(known.region_map.space.name))

    def clean_area(self) -> tuple[list[float], list[float]] | None:
        """Return the lower and the upper corner of the area; None without one."""
        try:
            numbers = [float(part) for part in self.cleaned_data["area"].split(",") if part.strip()]
        except ValueError:
            raise forms.ValidationError(
                gettext("must be numbers; got %(cleaned_data)s")
                % {"cleaned_data": f"{self.cleaned_data['area']!r:.80}"}
            ) from None
        if len(numbers) % 2:
            raise forms.ValidationError(
                gettext("must be as many numbers for lo as for hi; got %(count)s in all") % {"count": len(numbers)}
            )
        return (numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]) if numbers else None

    def run(self, space: spaces.Space, who: str) -> RegionMap:
        """Send the change to the engine; return the map that is to follow."""
        given = self.cleaned_data
        if given["source"] == AREA and not given["area"]:
            raise Refused("regions", _("an area must be drawn on the plan, or given by its corners; got none"))
        in_area = given["source"] == AREA
        places = regions.places_in_area(space, *given["area"]) if in_area else regions.places_of(space, given["source"])
        return regions.cut(space, given["partitioner"], given["regions"], places, who)


FORMS = {"split": SplitForm, "merge": MergeForm, "move": MoveForm, "cut": CutForm}


def _numbered(count: int) -> list[tuple[int, str]]:
    return [(number, str(number)) for number in range(count)]


def _sources(name: str) -> list[tuple[str, str]]:
    """Return what a space can be cut by: elements that came lately, an area, its layers, and its stored streams."""
    space = Space.objects.get(pk=name)
    layers = space.layers.filter(version__isnull=False).values_list("name", "title")
    stored = space.streams.filter(stored=True).values_list("name", "title")
    return [
        ("lately", gettext("the elements that came lately")),
        (AREA, gettext("an area")),
        *((f"layer:{name}", gettext("the features of %(value)s") % {"value": title or name}) for name, title in layers),
        *(
            (f"stored:{name}", gettext("the stored elements of %(value)s") % {"value": title or name})
            for name, title in stored
        ),
    ]


def answer_regions(model_admin: admin.ModelAdmin, request: HttpRequest, name: str) -> HttpResponse:
    """Respond with the page of a space's regions, or carry out one of its forms."""
    space = get_object_or_404(Space, pk=name)
    if not model_admin.has_change_permission(request, space):
        raise PermissionDenied
    context = {
        **model_admin.admin_site.each_context(request),
        "title": gettext("Regions of %(space)s") % {"space": space},
        "original": space,
    }
    context["opts"] = model_admin.opts
    try:
        known = regions.regions_now(space.parsed)
        changes = regions.changes_now(space.parsed)
    except Refused as refused:
        return _page(request, context | {"missing": refused.message})
    except NOT_NOW:
        return _page(request, context | {"missing": gettext("Redis does not answer.")})
    # Several forms have a field of the same name.
    ids = {action: f"{action}-%s" for action in FORMS}
    shown = {action: form(known, auto_id=ids[action]) for action, form in FORMS.items()}
    if request.method == "POST":
        action = request.POST.get("action")
        if action not in FORMS:
            raise Http404
        shown[action] = FORMS[action](known, request.POST, auto_id=ids[action])
        if shown[action].is_valid() and _ran(shown[action], request, space):
            return redirect("admin:webapp_space_regions", name)
    context |= {"forms": shown, "changes": _with_times(changes), **plan_of(known)}
    return _page(request, context)


def _page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    return TemplateResponse(request, "admin/webapp/space/regions.html", context)


def _ran(form: RegionForm, request: HttpRequest, space: Space) -> bool:
    """Carry out a valid form, and tell the user; return whether it was carried out."""
    try:
        later = form.run(space.parsed, request.user.get_username())
        in_force = regions.await_map(space.parsed, later, WAIT_S)
    except Refused as refused:
        form.add_error(None, refused.message)
        return False
    except NOT_NOW:
        form.add_error(None, _("Redis does not answer; try again."))
        return False
    if in_force:
        messages.success(request, gettext("In force now: %(why)s.") % {"why": later.why})
    else:
        messages.warning(
            request,
            gettext("The engine was told, but this is not in force after %(wait_s)s s: %(why)s.")
            % {"wait_s": f"{WAIT_S:g}", "why": later.why},
        )
    return True


def _with_times(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**change, "at": datetime.fromtimestamp(change["at_us"] / 1e6, UTC)} for change in changes]


def plan_of(known: Regions) -> Mapping[str, Any]:
    """Return what the plan of regions shows: their rectangles in its own units, with their loads.

    Examples
    --------
    >>> from streaming.operators.region_map import RegionMap
    >>> from streaming.spaces import EARTH
    >>> import numpy as np
    >>> plan = plan_of(Regions(RegionMap.grid(EARTH, 2), [], 2, {}, np.empty((0, 3))))
    >>> [(one["x"], one["y"], one["width"], one["height"]) for one in plan["regions"]]
    [(0.0, 0.0, 360.0, 360.0), (360.0, 0.0, 360.0, 360.0)]
    """
    axes = known.region_map.space.dimensions[:2]
    scale = PLAN_WIDTH / axes[0].extent
    height = min(axes[1].extent * scale, PLAN_WIDTH) if len(axes) > 1 else 80.0
    upward = height / axes[1].extent if len(axes) > 1 else 0.0
    document = known.document(regions.now_us())
    most = max([region["cores"] for region in document["regions"]], default=0.0)
    for region in document["regions"]:
        (x, *y), (to_x, *to_y) = region["lo"], region["hi"]
        region |= {"x": (x - axes[0].lo) * scale, "width": (to_x - x) * scale, "y": 0.0, "height": height}
        if y:
            region |= {"y": (axes[1].hi - to_y[0]) * upward, "height": (to_y[0] - y[0]) * upward}
        region["middle"] = region["x"] + region["width"] / 2, region["y"] + region["height"] / 2
        region["share"] = round(region["cores"] / most, 2) if most else 0.0
        region["percent"] = 100 * region["cores"]
    bounds = [getattr(axis, side) for side in ("lo", "hi") for axis in axes]
    return document | {"width": PLAN_WIDTH, "height": height, "bounds": bounds, "axes": axes}
