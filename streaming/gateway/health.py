"""What the gateway reports about each stream."""

import builtins
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from streaming.gateway.clock import SECOND_US
from streaming.language import gettext, gettext_noop, thousands

SAMPLE_CHARACTERS = 200
# A third-party decoder may give as many different reasons as there are elements.
MAX_REASONS = 100
OTHER_REASONS = gettext_noop("other reasons")
# After this many bytes without an element, the definition is probably wrong.
_SILENT_BYTES = 65_536


@dataclass
class StreamHealth:
    """Counters of one stream, for the life of the gateway's process.

    Attributes
    ----------
    space : str
    state : str
        running, connecting, retrying, stopped, failed or finished.
    error : str or None
        Why the stream is retrying or has failed.
    elements, merged, bytes : int
        Elements decoded; those of them that were replaced by newer ones before they were written; bytes received.
    stale : int
        Elements that the engine dropped because it knew a newer one of their object.
    lost : int
        Datagrams that were dropped because they came faster than the stream took them.
    waits : str or None
        Why its elements wait in the gateway, if that is not for the engine.
    noted : str or None
        What the decoder notes about its input, such as columns that the input lacks.
    malformed : dict of str to int
        Number of pieces of input that gave no element, or one that is too old to change an answer, by reason.
    last_malformed : dict
        By reason, the last such piece (`sample`) and when it came (`at_us`).
    last_us : int or None
        Wall-clock time of the last element.
    elements_per_s : float
        Over the last few reports.
    """

    space: str
    state: str = "stopped"
    error: str | None = None
    elements: int = 0
    merged: int = 0
    bytes: int = 0
    stale: int = 0
    lost: int = 0
    waits: str | None = None
    noted: str | None = None
    malformed: dict[str, int] = field(default_factory=dict)
    last_malformed: dict[str, dict[str, Any]] = field(default_factory=dict)
    last_us: int | None = None
    elements_per_s: float = 0.0

    def enter(self, state: str, error: object = None) -> None:
        """Change the state, and the error that led to it."""
        self.state, self.error = state, None if error is None else _writable(str(error) or type(error).__name__)

    def count_elements(self, elements: int, now_us: int) -> None:
        """Count elements that were decoded."""
        if elements:
            self.elements += elements
            self.last_us = now_us

    def count_malformed(self, reason: str, sample: builtins.bytes, now_us: int, times: int = 1) -> None:
        """Count input that was malformed, and keep its last piece; reasons beyond `MAX_REASONS` count as one."""
        reason = _writable(reason)
        if reason not in self.malformed and len(self.malformed) >= MAX_REASONS:
            reason = OTHER_REASONS
        self.malformed[reason] = self.malformed.get(reason, 0) + times
        self.last_malformed[reason] = {"sample": printable(sample), "at_us": now_us}

    def document(self) -> dict[str, Any]:
        """Return the stream's entry in ``lookout:health``, as a JSON object."""
        return asdict(self) | {"hint": self.hint()}

    def hint(self) -> str | None:
        """Return why the stream's elements wait, or what is probably wrong with its definition, or None."""
        if self.waits or self.noted:
            return self.waits or self.noted
        faults = sum(self.malformed.values())
        if self.elements or not (faults or self.bytes > _SILENT_BYTES):
            return None
        words = gettext("the decoder understands nothing of what arrives: no element in %(bytes)s bytes") % {
            "bytes": thousands(self.bytes)
        }
        if not faults:
            return gettext("%(words)s. Is it the right one?") % {"words": words}
        most = max(self.malformed, key=lambda reason: self.malformed[reason])
        return gettext("%(words)s, %(faults)s malformed, most of them by reason %(most)s. Is it the right one?") % {
            "words": words,
            "faults": thousands(faults),
            "most": repr(most),
        }


def rate(counts: Sequence[tuple[int, int]]) -> float:
    """Return the growth per second between the first and the last of some counts.

    Parameters
    ----------
    counts : sequence of (time_us, count)

    Examples
    --------
    >>> rate([(0, 10), (1_000_000, 11), (4_000_000, 30)])
    5.0
    """
    (begin_us, before), (end_us, after) = counts[0], counts[-1]
    return round((after - before) * SECOND_US / (end_us - begin_us), 1) if end_us > begin_us else 0.0


def printable(sample: bytes) -> str:
    r"""Return bytes as text that is safe to show, cut to `SAMPLE_CHARACTERS`.

    Examples
    --------
    >>> printable(b"!AIVDM\x00\xff")
    '!AIVDM\\x00\\xff'
    """
    return repr(sample[:SAMPLE_CHARACTERS])[2:-1][:SAMPLE_CHARACTERS]


def _writable(text: str) -> str:
    """Return a text without lone surrogates, which a file's name may have and JSON cannot write."""
    return text.encode(errors="replace").decode()
