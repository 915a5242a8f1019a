"""What is asked of a back-test: which queries, over which streams and time, and how much it may cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streaming.backtest.errors import InvalidBacktest
from streaming.errors import InvalidPlan
from streaming.kinds.base import Evaluation, Plan
from streaming.kinds.registry import kind_of
from streaming.plans import parse_plan
from streaming.spaces import EARTH, Space

US = 1_000_000
# Objects that were heard so long before the span are known at its beginning, unless their time-to-live is shorter.
WARM_UP_S = 3_600.0


@dataclass(frozen=True)
class BacktestLimits:
    """How much a back-test may cost; it ends, and says so, when one of these is reached.

    Parameters
    ----------
    elements : int
        The most elements that are played.
    seconds : float
        The longest time that it may take, in seconds.
    """

    elements: int = 5_000_000
    seconds: float = 300.0


@dataclass(frozen=True)
class BacktestRequest:
    """The question of a back-test.

    Parameters
    ----------
    plans : mapping of int to dict
        The JSON documents of the plans, by the numbers under which their results are told. For a rule also the plans of
        the queries that it names.
    span : (int, int)
        From when to when, in microseconds since 1970 UTC: the times at which gateways heard the elements.
    ttl_s : mapping of str to float or None
        The times-to-live of the streams, in seconds; None where objects never expire.
    layers : mapping of str to int, optional
        The versions of the layers that plans are joined with.
    space : Space, optional
    limits : BacktestLimits, optional
    moves : bool
        Whether it is told that objects move within answers, as a client is told live. If it is not, elements with which
        an object stays where it is are not played, which is many times faster.

    Raises
    ------
    InvalidBacktest
        If a plan cannot be played on stored elements.
    """

    plans: Mapping[int, Mapping[str, Any]]
    span: tuple[int, int]
    ttl_s: Mapping[str, float | None] = field(default_factory=dict)
    layers: Mapping[str, int] = field(default_factory=dict)
    space: Space = EARTH
    limits: BacktestLimits = BacktestLimits()
    moves: bool = True

    def __post_init__(self) -> None:
        if self.span[0] >= self.span[1]:
            raise InvalidBacktest(
                "a back-test must begin before it ends; got %(begin)s and %(end)s",
                begin=self.span[0],
                end=self.span[1],
            )
        for number in self.plans:
            _check(number, self.parsed(number))

    def parsed(self, number: int) -> Plan:
        """Return a plan."""
        try:
            return parse_plan(dict(self.plans[number]), self.space)
        except InvalidPlan as error:
            raise InvalidBacktest.of(error) from None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams whose elements decide the answers, in order."""
        return streams_of([self.parsed(number) for number in self.plans])

    @property
    def begin_us(self) -> int:
        """From when on elements are read: what was heard before the span tells where objects are at its beginning."""
        lives = [self.ttl_s.get(stream) for stream in self.streams]
        longest = max((WARM_UP_S if ttl_s is None else min(ttl_s, WARM_UP_S) for ttl_s in lives), default=WARM_UP_S)
        return self.span[0] - round(longest * US)


def streams_of(plans: Sequence[Plan]) -> tuple[str, ...]:
    """Return the streams whose elements decide the answers of plans, in order."""
    named = {plan.stream for plan in plans}
    for plan in plans:
        named |= {source.name for source in kind_of(plan).sources(plan) if source.type == "stream"}
    return tuple(sorted(named))


def _check(number: int, plan: Plan) -> None:
    if kind_of(plan).evaluation(plan) is Evaluation.SKETCH:
        raise InvalidBacktest(
            "a back-test must be of objects in answers; query %(number)s is a question to a sketch", number=number
        )
    for source in kind_of(plan).sources(plan):
        if source.type == "stored":
            raise InvalidBacktest(
                "a back-test has no partners of former times, so a join with stored elements cannot be "
                "played; query %(number)s is joined with those of %(name)s",
                number=number,
                name=repr(source.name),
            )
