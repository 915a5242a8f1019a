"""The state of a region's joins with streams, as if another region map had always been in force."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from streaming.operators.runs import distinct, find
from streaming.servers.answers.members import Answers
from streaming.servers.region.member_table import together
from streaming.servers.region.objects import Cold, Objects, elements_of
from streaming.servers.region.place import RegionPlace
from streaming.servers.region.state import Region
from streaming.servers.rescaling import Rescaling
from streaming.servers.ways.stream_joins.join_input import found_elements


def joined(rescaling: Rescaling, number: int, empty: Region, joins: Callable[[int], Region]) -> Region:
    """Return the state of a regional server's joins with streams.

    Parameters
    ----------
    rescaling : Rescaling
    number : int
    empty : Region
        With which a server with a new number begins.
    joins : callable
        Returns the state of an old region's joins with streams.
    """
    reach, regions = rescaling.before.reach, rescaling.regions
    if not reach:
        return empty
    own = joins(number) if number < len(regions) else empty
    known = found_elements(RegionPlace(number, rescaling.region_map), regions, reach)
    known = known.take(np.argsort(known["key_hash"].to_numpy(), kind="stable"))
    objects = own.objects.without(own.objects.whole.key_hash)
    if known.num_rows:
        objects = objects.updated(known)
    told = together([joins(other).pairs.whole() for other in range(len(regions))])
    mine = _told_by(rescaling, number, told, objects.whole, objects.cold)
    pairs = own.pairs.without_objects(distinct(own.pairs.whole().key)).joined([mine])
    return replace(own, objects=objects.settled(), pairs=pairs.settled())


def _told_by(rescaling: Rescaling, number: int, pairs: Answers, objects: Objects, cold: Cold) -> Answers:
    """Return those of all pairs that a region tells from now on."""
    (row, known), (partner, met) = find(objects.key_hash, pairs.key), find(objects.key_hash, pairs.partner)
    both = known & met  # a region that tells a pair knows both of its elements
    pairs, row, partner = pairs.take(both), row[both], partner[both]
    joins, ids = rescaling.before.stream_joins, rescaling.before.stream_ids
    elements = elements_of(objects, cold)
    meetings = joins.meetings(row, np.searchsorted(ids, pairs.query), partner, elements)
    return pairs.take(meetings.tellers(rescaling.region_map) == number)
