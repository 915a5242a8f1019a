"""Kinds, for instance of decoders: those built into Lookout, and those that other packages offer as entry points."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points


def known_kinds(group: str, built_in: Mapping[str, str]) -> dict[str, EntryPoint]:
    """Return where to load each kind from, by its name: first the built-in ones, which no package can replace.

    Parameters
    ----------
    group : str
        The group of the entry points. The name of an entry point is the name of its kind.
    built_in : mapping of str to str
        Where to load each built-in kind from, as ``module:object``, by its name. The built-in kinds do not need
        Lookout to be installed as a package.
    """
    own = {kind: EntryPoint(kind, place, group) for kind, place in built_in.items()}
    return own | {kind: point for kind, point in _offered(group).items() if kind not in own}


@cache
def _offered(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group that the installed packages offer, by name."""
    return {point.name: point for point in entry_points(group=group)}
