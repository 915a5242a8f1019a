"""The fields of a stream's form that say how its elements are sketched, and what that will cost."""

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.errors import LookoutError
from streaming.language import thousands
from streaming.sketch.settings import MOST_BINS, SketchSettings
from streaming.sketch.stream import parse_stream_sketch
from streaming.spaces import EARTH, Space

PREFIX = "sketch__"
MICROSECONDS = 1_000_000
# A feature, the number of bins, and the error budget in percent.
_PLANE = re.compile(r"(?P<feature>.+?)(\s+(?P<bins>\d+))?(\s+(?P<error>\d*\.?\d+)\s*%)?")
# Of a leaf: time bin, cell, planes, count, first and last time; its level; the box of its places.
_LEAF_BYTES, _FEATURE_BYTES, _PAIR_BYTES = 6 * 8 + 1 + 4 * 8, 5 * 8, 8


class Names(forms.CharField):
    """Names of features, with commas between."""

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show."""
        return value if isinstance(value, str) else ", ".join(value or ())

    def to_python(self, value: Any) -> Any:
        """Return the names."""
        text = value if isinstance(value, str) else ", ".join(value or ())
        return [name.strip() for name in text.split(",") if name.strip()]


class Planes(Names):
    """Features with their numbers of bins or their error budgets, such as ``speed_mps 16, altitude_m 0.5%``."""

    def prepare_value(self, value: Any) -> Any:
        """Return the text to show."""
        if isinstance(value, list):
            value = [_told(plane) for plane in value]
        return super().prepare_value(value)

    def to_python(self, value: Any) -> Any:
        """Return the planes as documents."""
        return [_plane(entry) for entry in super().to_python(self.prepare_value(value))]


def _told(plane: Mapping[str, Any]) -> str:
    bins = f" {plane['bins']}" if "bins" in plane else ""
    return plane["feature"] + bins + (f" {100 * plane['error']:.10g}%" if "error" in plane else "")


def _plane(entry: str) -> dict[str, Any]:
    found = _PLANE.fullmatch(entry)
    if found is None or (found["feature"] == entry and " " in entry):
        raise ValidationError(
            gettext(
                "a plane must be a feature and a number of bins, such as speed_mps 16, or an error "
                "budget, such as speed_mps 0.5%%, or both; got %(entry)s"
            )
            % {"entry": f"{entry!r:.80}"}
        )
    plane = {"feature": found["feature"]}
    if found["bins"]:
        plane["bins"] = int(found["bins"])
    if found["error"]:
        plane["error"] = float(f"{float(found['error']) / 100:.12g}")
    return plane


class Seconds(forms.FloatField):
    """A number of seconds, kept in microseconds."""

    def prepare_value(self, value: Any) -> Any:
        """Return the seconds to show."""
        return value / MICROSECONDS if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        """Return the microseconds."""
        seconds = super().clean(value)
        return None if seconds is None else round(seconds * MICROSECONDS)


def _planes_in_words() -> str:
    """Return what planes are, in the language of whoever asks now."""
    return gettext(
        "Features by whose values the sketch tells elements apart, each with its number of bins: "
        "speed_mps 16, altitude_m 8. Needed for sharp histograms and probabilities. Or with an "
        "error budget: with altitude_m 0.5%% it makes as many bins as keep 80 %% of the values "
        "within 0.5 %% of their range, but at most %(most_bins)s; with altitude_m 100 0.5%% at "
        "most 100."
    ) % {"most_bins": MOST_BINS}


CELL_BITS = _(
    "How fine places are told apart: each bit halves a cell. At the equator, cells are 156 km wide with "
    "16 bits, 10 km with 24, 1.2 km with 30 and 150 m with 36. Choose cells of at most a tenth of the "
    "width of the smallest area that is asked about. Empty: 16."
)
# What the form of a stream without a sketch proposes: ten cells across a strait.
PROPOSED_BITS = 30
LABELS = {
    "features": _("properties"),
    "planes": _("steps of values"),
    "comoments": _("features of correlations"),
    "sets": _("sets of values"),
    "cell_bits": _("fineness of places"),
    "time_bin_us": _("fineness of times"),
    "study_us": _("time that is kept finely"),
    "most_leaves": _("most leaves"),
}


def sketch_fields() -> dict[str, forms.Field]:
    """Return the form fields of a sketch's settings, in order, by name."""
    fields = {
        "features": Names(help_text=_("Properties to summarise, with commas between. Empty: no sketch.")),
        "planes": Planes(help_text=lazy(_planes_in_words, str)()),  # the form is made once, for all languages
        "comoments": Names(help_text=_("Features of whose pairs correlations and regressions can be asked.")),
        "sets": Names(
            help_text=_(
                "Properties of whose values it can be asked whether, how often, and how many different ones "
                "there were; key is the key of the objects."
            )
        ),
        "cell_bits": forms.IntegerField(help_text=CELL_BITS, initial=PROPOSED_BITS),
        "time_bin_us": Seconds(help_text=_("How fine times are told apart, in seconds. Empty: 3600.")),
        "study_us": Seconds(
            help_text=_(
                "Times older than this, in seconds, are kept more and more coarsely. Empty: all are kept alike."
            )
        ),
        "most_leaves": forms.IntegerField(
            help_text=_("The memory budget: with more leaves than this, everything becomes coarser. Empty: 1000000.")
        ),
    }
    for name, field in fields.items():
        field.required, field.label = False, LABELS[name]
    return {f"{PREFIX}{name}": field for name, field in fields.items()}


def initial_values(document: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the fields show of a sketch, by name."""
    values: dict[str, Any] = {"cell_bits": None, **document} if document else {}
    values["sets"] = (values.get("sets") or {}).get("features", [])
    return {f"{PREFIX}{name}": value for name, value in values.items()}


def given_sketch(cleaned: dict[str, Any], saved: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the document of the sketch that filled-in fields describe; None for no sketch.

    What the form has no field for stays as it is `saved`.
    """
    names = [name.removeprefix(PREFIX) for name in sketch_fields()]
    given = {name: cleaned.get(f"{PREFIX}{name}") for name in names}
    if not given["features"]:
        return None
    kept = {name: value for name, value in (saved or {}).items() if name not in names}
    if given["sets"]:
        given["sets"] = ((saved or {}).get("sets") or {}) | {"features": given["sets"]}
    return kept | {name: value for name, value in given.items() if value not in (None, [])}


def cost_in_words(document: dict[str, Any] | None, space: Space = EARTH) -> str:
    """Say how much memory a sketch takes at the most."""
    if document is None:
        return gettext("nothing: there is no sketch")
    try:
        told = parse_stream_sketch(document, space)
    except LookoutError:
        return gettext("unknown: the settings are not valid")
    settings = told.sketch
    leaves, sets = settings.most_leaves * leaf_bytes(settings), told.sets.most_bytes if told.sets else 0
    return (
        gettext(
            "at most %(leaves)s MB of memory in each region of the engine, and as much in its state: "
            "%(most_leaves)s leaves of %(settings)s bytes"
        )
        % {
            "leaves": f"{(leaves + sets) / 1e6:,.0f}",
            "most_leaves": thousands(settings.most_leaves),
            "settings": leaf_bytes(settings),
        }
    ) + (gettext(", and sets") if sets else "")


def leaf_bytes(settings: SketchSettings) -> int:
    """Return how many bytes a leaf takes."""
    return _LEAF_BYTES + _FEATURE_BYTES * len(settings.features) + _PAIR_BYTES * len(settings.pairs)
