"""Distributed queries as a way of evaluation: moving ranges, nearest neighbours, aggregates."""

from dataclasses import replace
from functools import partial

import polars as pl

from streaming.servers.answers.tuples import Results
from streaming.servers.control.step import ControlStep
from streaming.servers.way import AssemblerTurn, Part, RegionTurn, Way, WayState
from streaming.servers.ways.moving import assembler, participant, rescaling
from streaming.servers.ways.moving.assembler_codec import assembly_codec
from streaming.servers.ways.moving.focals import newly_followed
from streaming.servers.ways.moving.partial import Tracks
from streaming.servers.ways.moving.participant import IndexedObjects
from streaming.servers.ways.moving.participant_codec import MEMBERS_OF_AGGREGATES, PARTIAL

MEMBERS, SENT, ASSEMBLY = "participant", "partial", "assembly"
_TRACKS = ("tracks",)


class DistributedWay(Way):
    """Regions compute their part of each answer, and the assembler makes one answer of all parts."""

    states = (
        WayState(MEMBERS, lambda space: MEMBERS_OF_AGGREGATES),
        WayState(SENT, lambda space: PARTIAL, passed_on=True),
        WayState(ASSEMBLY, assembly_codec),
    )

    def concerns(self, control: ControlStep) -> bool:
        """Tell whether there are such queries, or were some."""
        return bool(len(control.before.distributed_ids) or len(control.after.distributed_ids))

    assembles = concerns

    def in_region(self, turn: RegionTurn) -> Results:
        """Run a region's part; return the results that need no assembler."""
        were = _members(turn)
        objects = IndexedObjects.of(turn.changed, turn.states.space, turn.indices.get(turn.number))
        turn.indices[turn.number] = objects.after
        step = partial(participant.step, turn.changed, tracks=_tracks(turn), members=were, indexed=objects)
        members, results, sent = turn.passed_on(step)
        turn.save(SENT, replace(sent, lacking=turn.lacking))
        if len(turn.control.after.distributed_ids):
            turn.save(MEMBERS, members)
        turn.noted["members"] = were, members
        return results

    def in_assembler(self, turn: AssemblerTurn) -> Part:
        """Make one answer of what all regions sent."""
        partials, was, tracks = turn.of_regions(SENT), turn.before(ASSEMBLY), _tracks(turn.last)
        if turn.last.rescaling:
            was = rescaling.assembly(turn.last.rescaling, was, partial(turn.last.before_of, MEMBERS))
        border = turn.border(was.left_out)
        border.leave_out(assembler.lacking(partials, turn.control))
        state, results, sent = border.passed(
            lambda control: assembler.step(was, partials, control, tracks, turn.all_regions)
        )
        if len(turn.control.after.distributed_ids):
            turn.attempt.save(ASSEMBLY, replace(state, left_out=border.left_out))
        return Part(results, border, sent)


def _members(turn: RegionTurn) -> pl.DataFrame:
    """Return the members of aggregates in a region before a batch, as if its map had been in force."""
    if turn.rescaling:
        return rescaling.members(turn.rescaling, turn.number, partial(turn.before_of, MEMBERS))
    return turn.before(MEMBERS)


def _tracks(turn: RegionTurn) -> Tracks:
    """Return where the focal objects are; every region and the assembler compute the same, each process once."""
    control, known = turn.control, turn.kept.get(_TRACKS)
    if known and known[0] == turn.batch and known[1].before is control.before and known[1].after is control.after:
        return known[2]
    state, heard = turn.states.before(ASSEMBLY, turn.batch, keep=False), turn.tables["focals"]
    found = newly_followed(control, turn.states.regions(turn.batch))
    elements, lost = state.following.followed(found, heard, control)
    keys = heard["key_hash"].to_numpy()
    tracks = Tracks(state.focals, replace(state.following, elements=elements), lost, keys, frozenset(state.left_out))
    turn.kept[_TRACKS] = turn.batch, control, tracks
    return tracks
