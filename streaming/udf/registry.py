"""The installed user-defined filters: those of this package, and those that other packages offer as entry points."""

from functools import cache
from importlib.metadata import EntryPoint

from streaming.entry_points import known_kinds
from streaming.errors import InvalidFilter
from streaming.udf.base import UserDefinedFilter

GROUP = "lookout.filters"

BUILT_IN = {
    "key_equals": "streaming.udf.equality:KeyEquals",
    "property_equals": "streaming.udf.equality:PropertyEquals",
    "geojson_spatial": "streaming.udf.geojson:GeoJsonSpatial",
    "geojson_spatial_strict": "streaming.udf.geojson:GeoJsonSpatialStrict",
}


def _filters() -> dict[str, EntryPoint]:
    return known_kinds(GROUP, BUILT_IN)


def filter_places() -> dict[str, str]:
    """Return where each installed filter is loaded from, as ``module:class``, by the name of the filter."""
    return {name: point.value for name, point in _filters().items()}


def filter_names() -> list[str]:
    """Return the names of all filters that are installed.

    Examples
    --------
    >>> "geojson_spatial" in filter_names()
    True
    """
    return list(_filters())


@cache
def filter_of(name: str) -> UserDefinedFilter:
    """Return the filter with a name, the same instance every time.

    Raises
    ------
    LookoutError
        If no such filter is installed, or it cannot be loaded.
    """
    if name not in _filters():
        raise InvalidFilter("udf must be one of %(value)s; got %(name)s", value=", ".join(_filters()), name=repr(name))
    try:
        return _filters()[name].load()()
    # This runs another package's code, which may raise anything; its error is the reason in the message.
    except Exception as error:
        raise InvalidFilter(
            "udf must be a filter that loads; got %(name)s: %(kind)s: %(error)s",
            name=repr(name),
            kind=type(error).__name__,
            error=error,
        ) from error
