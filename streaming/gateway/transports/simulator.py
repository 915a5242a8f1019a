"""A feed that the simulator generates."""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.decoders.options import REQUIRED, option
from streaming.gateway.clock import SECOND_US
from streaming.gateway.transports.base import Chunk, LiveTransport, check, parse_options
from streaming.simulator import FLEETS, feature_lines, make_fleet

_MOST_OBJECTS = 100_000
_FASTEST = 1_000


@dataclass(frozen=True)
class SimulatorOptions:
    """Options of the transport `simulator`; see docs/transports.md."""

    fleet: str = option(REQUIRED, "ships on sea lanes, or buses in Helsinki", tuple(FLEETS))
    count: int = option(100, "objects, up to 100000", minimum=1)
    seed: int = option(1, "another seed, another fleet", minimum=0)
    step_s: float = option(1.0, "seconds between two reports of each object", minimum=0.01)
    pace: float = option(1.0, "how much faster than the clock the objects live, up to 1000")

    def __post_init__(self) -> None:
        check(
            self.fleet in FLEETS,
            "fleet must be one of %(options)s; got %(fleet)s",
            options=", ".join(FLEETS),
            fleet=repr(self.fleet),
        )
        check(
            1 <= self.count <= _MOST_OBJECTS,
            "count must lie in [1, %(most_objects)s]; got %(count)s",
            most_objects=_MOST_OBJECTS,
            count=repr(self.count),
        )
        check(self.seed >= 0, "seed must not be negative; got %(seed)s", seed=repr(self.seed))
        check(0.01 <= self.step_s <= 3600, "step_s must lie in [0.01, 3600]; got %(step_s)s", step_s=repr(self.step_s))
        check(
            0 < self.pace <= _FASTEST,
            "pace must lie in (0, %(fastest)s]; got %(pace)s",
            fastest=_FASTEST,
            pace=repr(self.pace),
        )


class Simulator(LiveTransport):
    """Simulated objects that follow timetables by the clock, so a restart does not move any."""

    declared = SimulatorOptions

    def __init__(self, definition: Mapping[str, Any]) -> None:
        self.options = parse_options(SimulatorOptions, definition)

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield the feature of every object once per step; see `base.Transport.chunks`."""
        options = self.options
        fleet = await asyncio.to_thread(make_fleet, options.fleet, options.count, options.seed)
        while True:
            began_s = time.time()
            payload = await asyncio.to_thread(feature_lines, fleet, round(began_s * SECOND_US), options.pace)
            yield Chunk(payload=payload)
            await asyncio.sleep(max(0.0, began_s + options.step_s - time.time()))
