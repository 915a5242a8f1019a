"""The terms of an explanation: trees of conditions that hold, do not hold, or cannot be known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

# How the parts of a term decide it. Parts that are `told` do not decide anything.
ALL, ANY, NOT, TOLD = "all", "any", "not", "told"


@dataclass(frozen=True)
class BorderDistance:
    """How far an element is from the border of an area, a feature or a range.

    Parameters
    ----------
    distance_m : float
        Metres: negative within the area, positive outside of it, and 0 on the border.
    element, place : tuple of float, length 2, or None
        Longitude and latitude of the two ends: the place of the element, and the nearest place of the border.
    """

    distance_m: float
    element: tuple[float, float] | None = None
    place: tuple[float, float] | None = None


@dataclass(frozen=True)
class Term:
    """One condition, as far as it is known.

    Parameters
    ----------
    asks : str
        What is asked, in words.
    holds : bool or None
        None if it cannot be known.
    found : str
        What was found, in words.
    of : {"", "all", "any", "not", "told"}
        How the parts decide the term; with ``told``, they only say more about it.
    parts : tuple of Term
    border : BorderDistance or None
    """

    asks: str
    holds: bool | None
    found: str = ""
    of: str = ""
    parts: tuple["Term", ...] = ()
    border: BorderDistance | None = None

    def document(self, deciding: frozenset[int] | None = None) -> dict[str, Any]:
        """Return the term as a JSON object; `decides` marks the leaves that `deciding` returns."""
        if deciding is None:
            deciding = frozenset(map(id, self.deciding()))
        told: dict[str, Any] = {"asks": self.asks, "holds": self.holds, "found": self.found}
        if self.border:
            told["border"] = vars(self.border)
        if self.parts:
            told |= {"of": self.of, "parts": [part.document(deciding) for part in self.parts]}
        return told | ({"decides": True} if id(self) in deciding else {})

    def deciding(self) -> Iterator["Term"]:
        """Yield the terms because of which this one does not hold, or cannot be known; none if it holds.

        Examples
        --------
        >>> fast, near = Term("fast", False), Term("near", True)
        >>> [term.asks for term in every("both", [fast, near]).deciding()]
        ['fast']
        """
        if self.holds is not True:
            yield from self._deciding(self.holds)

    def _deciding(self, holds: bool | None) -> Iterator["Term"]:
        """Yield the leaves that make this term hold, not hold, or unknown, as `holds` says."""
        if self.of in ("", TOLD) or not self.parts:
            yield self
        elif self.of == NOT:
            yield from self.parts[0]._deciding(None if holds is None else not holds)
        else:
            for part in self.parts:
                if part.holds is holds:
                    yield from part._deciding(holds)


def every(asks: str, parts: Sequence[Term], found: str = "") -> Term:
    """Return the term that holds if all parts do; unknown if one is unknown, and none does not hold."""
    holds = [part.holds for part in parts]
    return Term(asks, False if False in holds else None if None in holds else True, found, ALL, tuple(parts))


def some(asks: str, parts: Sequence[Term], found: str = "") -> Term:
    """Return the term that holds if a part does; unknown if one is unknown, and none holds."""
    holds = [part.holds for part in parts]
    return Term(asks, True if True in holds else None if None in holds else False, found, ANY, tuple(parts))


def negated(asks: str, part: Term) -> Term:
    """Return the term that holds if the part does not."""
    return Term(asks, None if part.holds is None else not part.holds, "", NOT, (part,))


def with_details(term: Term, parts: Sequence[Term]) -> Term:
    """Return a term with parts that say more about it, and do not decide it."""
    return replace(term, of=TOLD, parts=tuple(parts))
