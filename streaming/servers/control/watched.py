"""What a server knows of queries that kept a step from ending, and to whom it names the steps that it runs."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from streaming.servers.control.step import ControlStep

# The queries that a step is run for alone, with their revisions.
Revisions = Collection[tuple[int, int]]


def _unnamed(answers: int, queries: Revisions) -> None:
    """Name a step to nobody."""


def _unended() -> None:
    """Tell nobody that a step has ended."""


@dataclass(frozen=True)
class Watched:
    """How the steps of one server in one micro-batch are watched. By default, nobody watches them.

    Parameters
    ----------
    quarantined : mapping of (int, int) to str
        The queries that the server does not evaluate any more, by number and revision: why.
    probed : bool
        Whether one of the steps did not end when the batch ran before, so that it is to be found out for whom.
    suspects : frozenset of int
        If so, one of these queries is the reason; empty if it may be any.
    begin : callable
        Takes a name of the step that begins: for how many answers it is run alone, which is 0 if it is run for all
        queries, or for none; and the queries that have this answer, or one of each answer if there are several.
    end : callable
        Called when the step has ended.
    """

    quarantined: Mapping[tuple[int, int], str] = field(default_factory=dict)
    probed: bool = False
    suspects: frozenset[int] = frozenset()
    begin: Callable[[int, Revisions], None] = _unnamed
    end: Callable[[], None] = _unended

    def among(self, control: ControlStep) -> dict[int, str]:
        """Return the queries in quarantine that run before or after a control step, and why they are."""
        found: dict[int, str] = {}
        for (query, revision), why in self.quarantined.items():
            if revision in (control.before.revision(query), control.after.revision(query)):
                found[query] = why
        return found
