"""The clock of a rule and an object: where the two are in time, as the assembler of rules tells it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

# The condition does not hold; it holds, but not for long enough, or there must be no alarm yet; the alarm lasts.
IDLE, HOLDING, ALARM = "idle", "holding", "alarm"


@dataclass(frozen=True)
class RuleClock:
    """Where a rule and an object are in time, at the engine's clock.

    Parameters
    ----------
    query : int
        The number of the rule.
    key : str
        The key of the object.
    now_us : int
        Before when everything is decided; this and all other times are in microseconds since 1970 UTC.
    phase : {"idle", "holding", "alarm"}
    holds : bool
        Whether the condition holds, and the schedule counts.
    members : tuple of int
        The queries that the rule names in whose answers the object is.
    since_us : int
        When the condition began to hold, in the phases ``holding`` and ``alarm``; otherwise 0. For a rule with a rate,
        when the alarm began.
    rearmed_us : int
        Until then there is no other alarm; 0 if there was none.
    began_us : tuple of int
        For a rule with a rate: when the condition began to hold, as far as it counts.
    numbers : tuple of float or None
        For a rule about whole answers: what each of its terms looks at, in their order: how many objects an answer has,
        or the value of an aggregate; None where it is not known, or there is no value.
    unknown : tuple of int
        The queries that the rule names and that do not run.
    heard_us : int
        For a rule about silence: when the object was heard last; 0 if never, as far as the engine knows.
    """

    query: int
    key: str
    now_us: int
    phase: str = IDLE
    holds: bool = False
    members: tuple[int, ...] = ()
    since_us: int = 0
    rearmed_us: int = 0
    began_us: tuple[int, ...] = ()
    numbers: tuple[float | None, ...] = ()
    unknown: tuple[int, ...] = ()
    heard_us: int = 0

    def document(self) -> dict[str, Any]:
        """Return the clock as a JSON object."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "RuleClock":
        """Return the clock that a JSON object describes; the inverse of `document`."""
        told = dict(document)
        return cls(**told | {name: tuple(told[name]) for name in ("members", "began_us", "numbers", "unknown")})
