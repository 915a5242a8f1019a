"""What is sketched of a stream, how finely, and for how long."""

import functools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from streaming.errors import LookoutError
from streaming.language import gettext
from streaming.spaces import EARTH, Space

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US

MOST_FEATURES = 64
MOST_PLANES = 6
# A plane's bin takes a byte of a leaf's key; 0 means that the feature is missing.
MOST_BINS = 254
USUAL_BINS = 16
MOST_CELL_BITS = 48
LEAST_TIME_BIN_US = 1_000_000


class InvalidSketch(LookoutError):
    """The settings of a sketch, or a question to it, break a rule."""


@dataclass(frozen=True)
class Plane:
    """A feature by whose values leaves are told apart, in bins of about equally many elements.

    Parameters
    ----------
    feature : str
    bins : int or None
        1 to 254. With an error, the largest number of bins. None: 16; with an error, 254.
    error : float or None
        The error budget: there are as many bins as it takes to keep this error for 80 % of the values. The error of a
        bin is the root mean square of its values' differences from their mean, as a part of the range of all values.
    """

    feature: str
    bins: int | None = None
    error: float | None = None

    @property
    def most_bins(self) -> int:
        """The number of bins; with an error, the largest one."""
        return self.bins or (USUAL_BINS if self.error is None else MOST_BINS)


@dataclass(frozen=True)
class SketchSettings:
    """What is sketched of a stream.

    Parameters
    ----------
    features : tuple of str
        The numbers that are summarised. The place and the time of the elements are always kept.
    planes : tuple of Plane
        At most 6. Densities are sharp for features that are planes, and rough for all others.
    cell_bits : int
        The length of a geohash in bits, 0 to 48; each bit halves a cell.
    axes : tuple of two int
        The dimensions of the space that make the cells.
    time_bin_us : int
        The length of a time bin, in microseconds, aligned to 1970 UTC.
    comoments : tuple of str
        The features of whose pairs co-moments are kept, for correlation and regression.
    study_us : int or None
        The length of study: what is older than this, against the newest element, is kept more and more coarsely. None
        is the equal mode: all times are kept alike.
    most_leaves : int
        The memory budget. If there would be more leaves, everything becomes coarser by a level.
    first : int
        The bins of the planes are made from so many elements, which are kept whole until then.
    follow : int
        After so many elements more the bins are made anew; 0 means never.
    space : Space
    """

    features: tuple[str, ...]
    planes: tuple[Plane, ...] = ()
    cell_bits: int = 16
    axes: tuple[int, int] = (0, 1)
    time_bin_us: int = HOUR_US
    comoments: tuple[str, ...] = ()
    study_us: int | None = None
    most_leaves: int = 1_000_000
    first: int = 10_000
    follow: int = 1_000_000
    space: Space = EARTH

    def __post_init__(self) -> None:
        _check_features(self)
        _check_planes(self)
        _check_ranges(self)

    @functools.cached_property
    def plane_features(self) -> tuple[int, ...]:
        """The position of each plane's feature."""
        return tuple(self.features.index(plane.feature) for plane in self.planes)

    @functools.cached_property
    def comoment_features(self) -> tuple[int, ...]:
        """The positions of the features with co-moments."""
        return tuple(self.features.index(name) for name in self.comoments)

    @functools.cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """The pairs of positions in `features` of which co-moments are kept, in the order of the columns."""
        chosen = self.comoment_features
        return tuple((one, other) for place, one in enumerate(chosen) for other in chosen[place + 1 :])

    @functools.cached_property
    def budgeted(self) -> bool:
        """Whether a plane has an error budget."""
        return any(plane.error is not None for plane in self.planes)

    @functools.cached_property
    def bin_levels(self) -> int:
        """How many levels it takes until each plane has one bin."""
        return max((math.ceil(math.log2(plane.most_bins)) for plane in self.planes), default=0)

    @functools.cached_property
    def last_spatial_level(self) -> int:
        """The first level at which one record a time bin is left; further levels make time bins longer."""
        return max(self.bin_levels, math.ceil(self.cell_bits / 2))

    def position(self, feature: str) -> int:
        """Return the position of a feature.

        Raises
        ------
        InvalidSketch
            If the feature is not sketched.
        """
        if feature not in self.features:
            raise InvalidSketch(
                "a feature must be one of %(features)s; got %(feature)s",
                features=", ".join(self.features),
                feature=f"{feature!r:.80}",
            )
        return self.features.index(feature)


def settings_document(settings: SketchSettings) -> dict[str, Any]:
    """Return settings as a JSON document, without the space: a stream knows its own."""
    return {
        field.name: getattr(settings, field.name) for field in fields(settings) if field.name not in ("space", "planes")
    } | {"planes": [_without_none(asdict(plane)) for plane in settings.planes]}


def _without_none(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if value is not None}


def parse_settings(document: Any, space: Space = EARTH) -> SketchSettings:
    """Return the settings that a JSON document describes; the inverse of `settings_document`.

    Raises
    ------
    InvalidSketch
        If the document breaks a rule. The message says the rule and the value.

    Examples
    --------
    >>> parse_settings({"features": ["speed_mps"], "planes": [{"feature": "speed_mps", "error": 0.005}]}).planes
    (Plane(feature='speed_mps', bins=None, error=0.005),)
    """
    known = {field.name for field in fields(SketchSettings)} - {"space"}
    _check_document(document, known, gettext("a sketch"))
    if "features" not in document:
        raise InvalidSketch("a sketch must have features; got none")
    values: dict[str, Any] = dict(document)
    values |= {name: tuple(value) for name, value in document.items() if isinstance(value, list)}
    if "planes" in values:
        values["planes"] = tuple(_plane(plane) for plane in _list(document, "planes"))
    return SketchSettings(**values, space=space)


def _plane(document: Any) -> Plane:
    _check_document(document, {field.name for field in fields(Plane)}, gettext("a plane"))
    return Plane(**document)


def _list(document: Mapping[str, Any], name: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(document[name], list | tuple):
        raise InvalidSketch("%(name)s must be a list; got %(document)s", name=name, document=f"{document[name]!r:.80}")
    return document[name]


def _check_document(document: Any, known: set[str], what: str) -> None:
    if not isinstance(document, Mapping):
        raise InvalidSketch("%(what)s must be an object; got %(document)s", what=what, document=f"{document!r:.80}")
    if unknown := sorted(set(document) - known):
        raise InvalidSketch(
            "%(what)s has the keys %(known)s; got the unknown %(unknown)s",
            what=what,
            known=", ".join(sorted(known)),
            unknown=f"{', '.join(unknown):.80}",
        )


def _check_features(settings: SketchSettings) -> None:
    for name in ("features", "comoments"):
        names = getattr(settings, name)
        if not isinstance(names, tuple) or not all(isinstance(one, str) and one for one in names):
            raise InvalidSketch("%(name)s must be a list of names; got %(names)s", name=name, names=f"{names!r:.80}")
        if len(set(names)) < len(names):
            raise InvalidSketch("%(name)s must be distinct; got %(names)s", name=name, names=f"{', '.join(names):.200}")
    if not 1 <= len(settings.features) <= MOST_FEATURES:
        raise InvalidSketch(
            "a sketch must have 1 to %(most_features)s features; got %(count)s",
            most_features=MOST_FEATURES,
            count=len(settings.features),
        )
    for name in settings.comoments:
        settings.position(name)


def _check_planes(settings: SketchSettings) -> None:
    planes = settings.planes
    if not isinstance(planes, tuple) or not all(isinstance(plane, Plane) for plane in planes):
        raise InvalidSketch("planes must be a list of planes; got %(planes)s", planes=f"{planes!r:.80}")
    if len(planes) > MOST_PLANES:
        raise InvalidSketch(
            "a sketch must have at most %(most_planes)s planes; got %(count)s",
            most_planes=MOST_PLANES,
            count=len(planes),
        )
    if len({plane.feature for plane in planes}) < len(planes):
        raise InvalidSketch("planes must have distinct features")
    for plane in planes:
        settings.position(plane.feature)
        if plane.bins is not None:
            _check_integer("bins", plane.bins, 1, MOST_BINS)
        _check_error(plane.error)


def _check_error(error: Any) -> None:
    if error is None:
        return
    if not isinstance(error, int | float) or isinstance(error, bool) or not 0 < error <= 1:
        raise InvalidSketch(
            "the error of planes must be a number above 0 and at most 1; got %(error)s", error=f"{error!r:.80}"
        )


def _check_ranges(settings: SketchSettings) -> None:
    _check_integer("cell_bits", settings.cell_bits, 0, MOST_CELL_BITS)
    _check_integer("time_bin_us", settings.time_bin_us, LEAST_TIME_BIN_US, 2**52)
    _check_integer("most_leaves", settings.most_leaves, 1, 2**40)
    _check_integer("first", settings.first, 1, 1_000_000)
    _check_integer("follow", settings.follow, 0, 2**52)
    if settings.study_us is not None:
        _check_integer("study_us", settings.study_us, settings.time_bin_us, 2**60)
    axes, n = settings.axes, settings.space.n
    if not isinstance(axes, tuple) or len(axes) != 2 or len(set(axes)) != 2 or not all(a in range(n) for a in axes):
        raise InvalidSketch(
            "axes must be two of the dimensions 0 to %(n)s; got %(axes)s", n=n - 1, axes=f"{axes!r:.80}"
        )


def _check_integer(name: str, value: Any, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidSketch(
            "%(name)s must be an integer from %(least)s to %(most)s; got %(value)s",
            name=name,
            least=least,
            most=most,
            value=f"{value!r:.80}",
        )
