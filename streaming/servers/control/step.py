"""The control step of a micro-batch: what servers see of its control entries."""

from dataclasses import dataclass

from streaming.servers.control.registry import Applied, Registry


@dataclass(frozen=True)
class ControlStep:
    """The registry without and with the control entries of a micro-batch, what they did, and the latest tick."""

    before: Registry
    after: Registry
    applied: Applied
    now_us: int
