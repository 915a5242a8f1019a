"""What joins over event time share: fields of their plans, from JSON and back.

References
----------
Li et al., "Distributed join query method for large-scale spatial data streams", Geomatics and Information Science of
Wuhan University 2023, definitions 5 to 7.
"""

from dataclasses import dataclass
from typing import Any

from streaming.kinds.values import FiniteNumber
from streaming.kinds.words import number
from streaming.language import gettext

# Reports wait in memory for as long, and a month of any feed is more than a machine has.
MOST_S = 31 * 24 * 3600.0
LATENESS_S = 10.0
# The keys of plans that belong to one of the kinds.
TIMES = ("window_s", "slide_s", "start_s", "lower_s", "upper_s", "bin_s", "for_s", "gap_s", "away_from")
IDLE_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Duration(FiniteNumber):
    """A number of seconds, at most `MOST_S`, to the microsecond."""

    most: float = MOST_S
    digits: int | None = 6


def near_words(join: dict[str, Any], unit: str) -> str:
    """Say in words what a pair must satisfy, given the key `join`: for instance "within 500 m of buses"."""
    if join["predicate"] == "dwithin":
        return gettext("within %(distance)s%(unit)s of %(stream)s") % {
            "distance": number(join["distance"]),
            "unit": unit,
            "stream": join["stream"],
        }
    return f"{join['predicate']} {join['stream']}"
