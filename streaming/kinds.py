"""Kinds of things that Lookout brings, and that other packages offer beside them by an entry point."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points


def known_kinds(group: str, built_in: Mapping[str, str]) -> dict[str, EntryPoint]:
    """Return where to load each kind from, by its name: the built-in ones first, which no package can replace.

    Parameters
    ----------
    group : str
        Of entry points, whose names are kinds.
    built_in : mapping of str to str
        What the built-in kinds load, as ``module:object``. They are there even where Lookout is not installed.
    """
    own = {kind: EntryPoint(kind, place, group) for kind, place in built_in.items()}
    return own | {kind: point for kind, point in _offered(group).items() if kind not in own}


@cache
def _offered(group: str) -> dict[str, EntryPoint]:
    """Return what the installed packages offer, by its name."""
    return {point.name: point for point in entry_points(group=group)}
