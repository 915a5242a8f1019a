"""The control entries of a micro-batch, as servers see them."""

from dataclasses import dataclass

from streaming.servers.control.registry import Applied, Registry


@dataclass(frozen=True)
class ControlStep:
    """The control entries of a micro-batch: the registry without and with them, what they did, the latest tick."""

    before: Registry
    after: Registry
    applied: Applied
    now_us: int
