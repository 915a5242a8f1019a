"""Open the traces of a process, which its settings ask for."""

import logging
import threading
from functools import lru_cache

from streaming.traces import OFF, Traces

_opening = threading.Lock()


def open_traces(ratio: float, program: str, space: str = "") -> Traces:
    """Return the traces of this process, which sends spans from a thread of its own; the same for the same arguments.

    Parameters
    ----------
    ratio : float
        Which part of the elements is sampled, from 0 to 1.
    program : {"gateway", "engine", "web"}
        It gives ``service.name``.
    space : str, optional
        The space that the program evaluates; empty if it serves all of them.
    """
    with _opening:
        return _opened(ratio, program, space) if ratio else OFF


@lru_cache(maxsize=8)
def _opened(ratio: float, program: str, space: str) -> Traces:
    from streaming.trace_export import Exporting  # needs OpenTelemetry

    logging.getLogger(__name__).info("%g of all elements are traced", ratio)
    return Traces(ratio, Exporting.to_collector(program, space))
