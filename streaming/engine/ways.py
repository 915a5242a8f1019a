"""The ways of evaluation that an engine runs, in their order: the only list of them."""

from streaming.servers.home_turn import HomePart
from streaming.servers.way import Way
from streaming.servers.ways.encounters.way import EncounterWay
from streaming.servers.ways.moving.way import DistributedWay
from streaming.servers.ways.rules.way import RuleWay
from streaming.servers.ways.sketches.way import SketchWay
from streaming.servers.ways.stream_joins.way import StreamJoinWay
from streaming.servers.ways.time_joins.way import TimeJoinWay
from streaming.servers.ways.tracks.way import TrackWay

# Rules look at what the ways before them tell.
WAYS: list[Way] = [
    StreamJoinWay(),
    TimeJoinWay(),
    SketchWay(),
    EncounterWay(),
    TrackWay(),
    DistributedWay(),
    RuleWay(),
]


def home_parts() -> list[HomePart]:
    """Return how the ways keep parts of the state of home servers, in their order."""
    return [way.home_part for way in WAYS if way.home_part is not None]
