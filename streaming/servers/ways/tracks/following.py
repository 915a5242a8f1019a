"""Queries about tracks, in a home server: who is in their answers.

They are evaluated where each report of an object arrives, in its order: in the object's home server, and not in
regions. So nothing has to be handed over when an object goes to another region, or when a region is split; the state
of an object is divided with its home server alone. A home server sends what it has to tell to the region of the
object, whose fragment tells it.

An answer changes at a report, or between two reports. An object that came and went within a micro-batch is told in two:
`in_turn`. So there are two memberships, as it is, and as it was told.
"""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from streaming.elements import bounds_array, partition_of
from streaming.language import gettext_noop
from streaming.operators.allowance import PairAllowance
from streaming.operators.failures import DOUBTED, Failures
from streaming.operators.runs import distinct, expand, find, first_of_runs, last_of_runs
from streaming.operators.tracks import TrackQueries, Turns, passed_at, places_of
from streaming.results import (
    CANCELLED,
    DROPPED,
    EDITED,
    ENTERED,
    EXPIRED,
    FAILED,
    FILTERED,
    LEFT,
    MOVED,
    REGISTERED,
    SNAPSHOT,
    STAYED,
    result_schema,
)
from streaming.servers.answers.in_turn import in_turn
from streaming.servers.answers.names import names_of
from streaming.servers.control.border import refuse
from streaming.servers.control.step import ControlStep
from streaming.servers.sorted_runs import Column, SortedRuns
from streaming.servers.ways.tracks.events import SOURCE, Events, TrackPairs, event_rows, source_of
from streaming.servers.ways.tracks.fixes import (
    FixChanges,
    advanced,
    columns_of,
    elements_of,
    group_number,
    no_fixes,
    reports_of,
    without,
)
from streaming.servers.ways.tracks.state import Tracked, Tracking

T = TypeVar("T")

_DOUBTED_TEXT = gettext_noop("reports were not believed: faster than %(fastest)g m/s since the last believed report")

# Queries that begin, the objects in their answers, and the rows of the objects' reports.
Begun = tuple[np.ndarray, np.ndarray, np.ndarray]


def step(was: Tracking, elements: pa.Table, control: ControlStep, now_us: int) -> tuple[Tracking, Tracked]:
    """Follow the tracks of objects through a micro-batch.

    Parameters
    ----------
    was : Tracking
    elements : pyarrow.Table
        With `elements.tracked_schema`, in the order of arrival: all elements of the home server.
    control : ControlStep
    now_us : int
        The latest tick.
    """
    return _TrackStep(was, control, now_us, elements.num_rows).run(elements)


class _TrackStep:
    """One micro-batch."""

    def __init__(self, was: Tracking, control: ControlStep, now_us: int, elements: int) -> None:
        self._was, self._control, self._now_us = was, control, now_us
        self._queries: TrackQueries = control.after.tracks
        self._space = control.after.space
        before, changed = control.before.tracks.ids, control.applied.changed
        known = find(before, self._queries.ids)[1] & ~find(changed, self._queries.ids)[1]
        self._kept, self._begun = self._queries.ids[known], np.flatnonzero(~known)
        self._numbers = np.array([group_number(*group) for group in self._queries.groups], dtype=np.int64)
        begins = len(self._begun) > 0
        allowance = PairAllowance(elements, len(was.fixes) * begins, begins=begins)
        self._failures, self._events = Failures(allowance), list[Events]()

    def run(self, elements: pa.Table) -> tuple[Tracking, Tracked]:
        """Run it."""
        control, fixes = self._control, self._was.fixes
        if control.before.tracks is not self._queries:
            fixes, _ = without(fixes, lambda columns: ~np.isin(columns["group"], self._numbers))
        advance = advanced(fixes, elements, self._queries.groups, self._space)
        fixes, gone, names = self._silent(advance.fixes)
        begun, reports = self._registered(fixes, advance)
        touched = self._touched(advance, begun, gone)
        part, row = self._was.members.rows(touched)
        members = self._was.members.take(part, row)
        pairs = self._pairs(members, begun, advance)
        self._end(members)
        self._begin(pairs, members, begun, reports)
        self._walk(pairs, advance)
        began = perf_counter()
        self._leave(pairs, gone, names)
        self._stay(pairs, advance)
        told, waiting = self._told()
        table = self._put(touched, pairs, members, told, waiting)
        snapshots = self._snapshots(table)
        self._failures.share(told["query"].to_numpy(), perf_counter() - began, self._queries.ids)
        state = Tracking(fixes.settled(), table.settled(), waiting, self._was.left_out)
        return state, Tracked(told, snapshots, self._failures, *self._left_out(advance))

    def _registered(self, fixes: SortedRuns, advance: FixChanges) -> tuple[Begun, pa.Table]:
        """Return the pairs of queries that begin and of objects that are in their answers, and the objects' reports.

        A query begins with the newest fixes. Objects that had none before the micro-batch are followed from their first
        report on.
        """
        none = np.empty(0, dtype=np.int64)
        if not len(self._begun):
            return (none, none, none), reports_of(no_fixes(self._space), self._space)
        groups = self._numbers[self._queries.group[self._begun]]
        new = np.sort(advance.name[advance.are_new])
        part, row = fixes.select(lambda run: np.isin(run.columns["group"], groups) & ~find(new, run.key)[1])
        columns = fixes.take(part, row)
        table = reports_of(columns, self._space)
        elements = elements_of(table)
        places = places_of(elements.bounds, self._space.n)
        at, one = self._queries.near(np.hstack([places, places]), self._begun)
        mine = columns["group"][at] == groups[one]
        at, one = at[mine], one[mine]
        within = self._judged(
            self._begun[one], lambda failed: self._queries.within(elements, at, self._begun[one], failed)
        )
        at, query = at[within], self._queries.ids[self._begun[one[within]]]
        return (query, columns["key_hash"][at], at), table

    def _silent(self, fixes: SortedRuns) -> tuple[SortedRuns, pa.Table, np.ndarray]:
        """Return the fixes without objects that have to leave, the reports of these, and their names."""
        control = self._control
        dropped, after, now_us = list(control.applied.dropped), control.after, self._now_us
        if not dropped and not control.applied.now_us:
            return fixes, reports_of(no_fixes(self._space), self._space), np.empty(0, dtype=np.int64)

        def leaving(columns: Mapping[str, Column]) -> np.ndarray:
            overdue = columns["heard_us"] < now_us - after.ttl_of(columns["stream"])
            return overdue | np.isin(columns["stream"], dropped)

        fixes, gone = without(fixes, leaving)
        return fixes, reports_of(gone, self._space), names_of(gone["group"], gone["key_hash"])

    def _touched(self, advance: FixChanges, begun: Begun, gone: pa.Table) -> np.ndarray:
        """Return the objects whose memberships may change, ascending."""
        kept = self._kept
        ended = self._was.members.select(lambda run: ~find(kept, run.columns["query"])[1])
        return distinct(
            np.r_[
                advance.key_hash,
                begun[1],
                gone["key_hash"].to_numpy(),
                self._was.members.keys(*ended),
                self._was.waiting["key_hash"].to_numpy(),
            ]
        )

    def _pairs(self, members: Mapping[str, Any], begun: Begun, advance: FixChanges) -> TrackPairs:
        """Return all pairs that something concerns."""
        query, key = members["query"], members["key_hash"]
        box, position = self._near(advance)
        mine = self._queries.group[position] == advance.group[box]
        near = self._queries.ids[position[mine]], advance.key_hash[box[mine]]
        waiting = self._was.waiting
        queries = np.r_[query, begun[0], near[0], waiting["query"].to_numpy()]
        keys = np.r_[key, begun[1], near[1], waiting["key_hash"].to_numpy()]
        name, first = np.unique(names_of(queries, keys), return_index=True)
        row = np.full(len(name), -1)
        row[np.searchsorted(name, names_of(query, key))] = np.arange(len(query))
        inside = np.zeros(len(name), dtype=bool)
        kept = find(self._kept, query)[1] & (members["inside"] == 1)
        pairs = TrackPairs(name, queries[first], keys[first], inside, row)
        inside[pairs.place(query[kept], key[kept])] = True
        inside[pairs.place(*begun[:2])] = True
        return pairs

    def _near(self, advance: FixChanges) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of an object of the advance, and a query whose area is near its legs."""
        legs, count = advance.legs, advance.count
        if not len(count) or not len(self._queries):
            none = np.empty(0, dtype=np.int64)
            return none, none
        places = places_of(legs.elements.bounds, self._space.n)
        ends, starts = places[legs.row], places[np.where(legs.before < 0, legs.row, legs.before)]
        starts[:, 0] -= 360 * np.round((starts[:, 0] - ends[:, 0]) / 360)
        low, high = np.minimum(starts, ends), np.maximum(starts, ends)
        return self._queries.near(
            np.hstack([np.minimum.reduceat(low, advance.first), np.maximum.reduceat(high, advance.first)])
        )

    def _end(self, members: Mapping[str, Any]) -> None:
        """Tell that the answers of queries end that have ended."""
        control = self._control
        query = members["query"]
        over = (members["told"] == 1) & ~find(self._queries.ids, query)[1] & find(control.before.tracks.ids, query)[1]
        rows = np.flatnonzero(over)
        reason = np.where(np.isin(query[rows], control.applied.failed), FAILED, CANCELLED)
        self._events.append(Events.of(query[rows], source_of(members, self._space, rows), LEFT, reason))

    def _begin(self, pairs: TrackPairs, members: Mapping[str, Any], begun: Begun, reports: pa.Table) -> None:
        """Tell how the answers of queries that begin, or are edited, differ from what was told of them."""
        if not len(self._begun):
            return
        query, told = members["query"], members["told"] == 1
        was = told & find(self._queries.ids[self._begun], query)[1] & find(self._control.before.tracks.ids, query)[1]
        rows = np.flatnonzero(was)
        left = rows[~pairs.inside[pairs.place(query[rows], members["key_hash"][rows])]]
        self._events.append(Events.of(query[left], source_of(members, self._space, left), LEFT, EDITED))
        number, key, at = begun
        known = np.sort(names_of(query[rows], members["key_hash"][rows]))
        new = np.flatnonzero(~find(known, names_of(number, key))[1])
        edited = find(self._control.before.tracks.ids, number[new])[1]
        source = reports.take(pa.array(at[new]))
        self._events.append(Events.of(number[new], source, ENTERED, np.where(edited, EDITED, REGISTERED)))

    def _among(self, pairs: TrackPairs, rows: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of the pairs at rows have their objects, with their groups, among names, and where there."""
        position, _ = self._queries.positions(pairs.query[rows])
        own = names_of(self._numbers[self._queries.group[position]], pairs.key[rows])
        order = np.argsort(names)
        place, found = find(names[order], own)
        return rows[found], order[place[found]]

    def _running(self, pairs: TrackPairs) -> np.ndarray:
        return self._queries.positions(pairs.query)[1]

    def _walk(self, pairs: TrackPairs, advance: FixChanges) -> None:
        """Follow the legs of objects, and tell where they enter and leave."""
        rows, of = self._among(pairs, np.flatnonzero(self._running(pairs)), advance.name)
        position, _ = self._queries.positions(pairs.query)
        follows = advance.are_new[of] | ~np.isin(position[rows], self._begun)
        rows, of = rows[follows], of[follows]
        pair, leg = expand(advance.first[of], advance.count[of])
        pair = rows[pair]
        if not len(pair):
            return
        turns = self._judged(
            position[pair], lambda failed: self._queries.turns(advance.legs, leg, position[pair], failed)
        )
        at = pair[turns.pair]
        first = first_of_runs(at)
        was = np.r_[False, turns.is_within[:-1]][: len(at)]
        was[first] = pairs.inside[at[first]]
        news = np.flatnonzero(was != turns.is_within)
        last = last_of_runs(at)
        pairs.inside[at[last]] = turns.is_within[last]
        self._events.append(self._turned(pairs, advance, at[news], leg[turns.pair[news]], turns, news))

    def _judged(self, queries: np.ndarray, judge: Callable[[Failures], T]) -> T:
        """Return what comes of pairs, given the positions of their queries, which have the costs."""
        began, failed = perf_counter(), self._failures.part()
        found = judge(failed)
        failed.share(queries, perf_counter() - began)
        self._failures.add(failed, self._queries.ids)
        refuse(self._failures.settled(self._control.after.columns.owners_of))
        return found

    def _turned(
        self, pairs: TrackPairs, advance: FixChanges, pair: np.ndarray, leg: np.ndarray, turns: Turns, news: np.ndarray
    ) -> Events:
        legs, share = advance.legs, turns.share[news]
        row, before = legs.row[leg], legs.before[leg]
        source = advance.table.take(pa.array(row)).select(list(SOURCE))
        between = np.flatnonzero(share < 1)
        from_us, to_us = np.full((2, len(row)), -1, dtype=np.int64)
        from_us[between], to_us[between] = legs.time_us[before[between]], legs.time_us[row[between]]
        if len(between):
            bounds, n = legs.elements.bounds, self._space.n
            start, end = (places_of(bounds[some[between]], n) for some in (before, row))
            time_us, place = passed_at(start, end, (from_us[between], to_us[between]), share[between])
            boxes, times_us = bounds[row].copy(), legs.time_us[row].copy()
            boxes[between[:, None], [0, 1]] = boxes[between[:, None], [n, n + 1]] = place
            times_us[between] = time_us
            for name, column in (("time_us", pa.array(times_us)), ("bounds", bounds_array(boxes))):
                at = source.schema.get_field_index(name)
                source = source.set_column(at, source.schema.field(name), column)
        is_within = turns.is_within[news]
        sign = np.where(is_within, ENTERED, LEFT).astype(np.int8)
        reason = np.where(turns.by_filter[news], FILTERED, MOVED).astype(np.int8)
        return Events(pairs.query[pair], source, sign, reason, from_us, to_us)

    def _leave(self, pairs: TrackPairs, gone: pa.Table, names: np.ndarray) -> None:
        """Tell that objects leave that are silent, or whose streams are dropped."""
        rows, at = self._among(pairs, np.flatnonzero(self._running(pairs) & pairs.inside), names)
        pairs.inside[rows] = False
        source = gone.take(pa.array(at))
        dropped = np.isin(source["stream"].to_numpy(), list(self._control.applied.dropped))
        self._events.append(Events.of(pairs.query[rows], source, LEFT, np.where(dropped, DROPPED, EXPIRED)))

    def _stay(self, pairs: TrackPairs, advance: FixChanges) -> None:
        """Tell where objects are that stay in answers, or that entered between reports."""
        rows = np.flatnonzero(self._running(pairs) & pairs.inside)
        rows, of = self._among(pairs, rows[~self._control.after.quiet(pairs.query[rows])], advance.name)
        if not len(rows):
            return
        newest = advance.legs.row[advance.first[of] + advance.count[of] - 1]
        # One that has entered at this very report was told with it.
        told = pa.concat_tables([event_rows(events, self._space) for events in self._events])
        entered = told.filter(pa.array((told["sign"].to_numpy() == ENTERED) & ~told["from_us"].is_valid().to_numpy()))
        name, time_us = names_of(entered["query"].to_numpy(), entered["key_hash"].to_numpy()), entered["time_us"]
        moments = np.sort(names_of(name, time_us.to_numpy()))
        mine = names_of(pairs.name[rows], advance.legs.time_us[newest])
        left = ~find(moments, mine)[1]
        source = advance.table.take(pa.array(newest[left]))
        self._events.append(Events.of(pairs.query[rows[left]], source, STAYED, MOVED))

    def _told(self) -> tuple[pa.Table, pa.Table]:
        """Return the tuples that are told now, and those that wait."""
        new = pa.concat_tables([event_rows(events, self._space) for events in self._events])
        waiting = self._was.waiting
        kept = find(self._kept, waiting["query"].to_numpy())[1]
        names = distinct(names_of(new["query"].to_numpy(), new["key_hash"].to_numpy()))
        later = find(names, names_of(waiting["query"].to_numpy(), waiting["key_hash"].to_numpy()))[1]
        kept &= ~(later & (waiting["sign"].to_numpy() == STAYED))
        return in_turn(pa.concat_tables([waiting.filter(pa.array(kept)), new]))

    def _put(
        self, touched: np.ndarray, pairs: TrackPairs, members: Mapping[str, Any], told: pa.Table, waiting: pa.Table
    ) -> SortedRuns:
        """Return the members after the micro-batch."""
        known = find(self._queries.ids, pairs.query)[1]
        sources = pa.concat_tables(
            [source_of(members, self._space), *(t.select(list(SOURCE)) for t in (told, waiting))]
        )
        offset = len(members["query"])
        from_row, is_told = pairs.row.copy(), np.zeros(len(pairs.name), dtype=bool)
        had = np.flatnonzero(pairs.row >= 0)
        is_told[had] = members["told"][pairs.row[had]] == 1
        is_told &= find(self._control.before.tracks.ids, pairs.query)[1]
        for table, counts in ((waiting, False), (told, True)):
            offset_now = offset if counts else offset + told.num_rows
            name = names_of(table["query"].to_numpy(), table["key_hash"].to_numpy())
            order = np.argsort(name, kind="stable")
            last = order[last_of_runs(name[order])]
            place, here = find(pairs.name, name[last])
            last, place = last[here], place[here]
            if counts:
                from_row[place] = offset_now + last
                is_told[place] = table["sign"].to_numpy()[last] != LEFT
            else:
                new = ~is_told[place]
                from_row[place[new]] = offset_now + last[new]
        stays = known & (pairs.inside | is_told)
        rows = np.flatnonzero(stays)
        rows = rows[np.argsort(pairs.key[rows], kind="stable")]
        columns: dict[str, Column] = {"query": pairs.query[rows], "inside": pairs.inside[rows].astype(np.int8)}
        columns["told"] = is_told[rows].astype(np.int8)
        columns |= columns_of(sources.take(pa.array(from_row[rows])).combine_chunks())
        key = pairs.key[rows]
        there = self._was.members.find(touched)[0] >= 0
        removed = touched[there & ~find(key, touched)[1]]
        return self._was.members.put(key, columns, removed, len(distinct(key)) - int(there.sum()))

    def _snapshots(self, table: SortedRuns) -> pa.Table:
        """Return the requested snapshots: the answers as they were told."""
        asked = np.unique(np.array(self._control.applied.snapshots, dtype=np.int64))
        asked = asked[find(self._queries.ids, asked)[1]]
        if not len(asked):
            return result_schema(self._space).empty_table()
        part, row = table.select(lambda run: (run.columns["told"] == 1) & find(asked, run.columns["query"])[1])
        found = table.take(part, row)
        events = Events.of(found["query"], source_of(found, self._space), ENTERED, SNAPSHOT)
        return event_rows(events, self._space)

    def _left_out(self, advance: FixChanges) -> tuple[int, int]:
        """Note the reports that are not believed; return how many they are, and how many came too late."""
        group = self._queries.group
        for number in np.flatnonzero(advance.doubted).tolist():
            count, fastest = int(advance.doubted[number]), self._queries.groups[number][1]
            queries = self._queries.ids[group == number]
            self._failures.leave(queries, DOUBTED, _DOUBTED_TEXT % {"fastest": fastest}, count)
        return int(advance.doubted[group].sum()), int(advance.late[group].sum())


def divided(states: Sequence[Tracking], partitions: int) -> list[Tracking]:
    """Return the states of other home servers, of so many, which know the same objects."""
    # Runs that are stored already have smaller numbers.
    following = max(max(one.fixes.following, one.members.following) for one in states)
    return [_part_of(states, partitions, number, following) for number in range(partitions)]


def _part_of(states: Sequence[Tracking], partitions: int, number: int, following: int) -> Tracking:
    tables = []
    for name in ("fixes", "members"):
        like = getattr(states[0], name).like
        table = SortedRuns(like, following=following)
        for state in states:
            found = getattr(state, name)
            part, row = found.whole()
            columns = found.take(part, row, ["", *like])
            key = columns.pop("")
            mine = np.flatnonzero(partition_of(columns["key_hash"], partitions) == number)
            some = {one: c[mine] if isinstance(c, np.ndarray) else c.take(pa.array(mine)) for one, c in columns.items()}
            table = table.put(key[mine], some, key[:0], len(distinct(key[mine])))
        tables.append(table.settled())
    waiting = pa.concat_tables([state.waiting for state in states])
    waiting = waiting.filter(pa.array(partition_of(waiting["key_hash"].to_numpy(), partitions) == number))
    fixes, members = tables
    return Tracking(fixes, members, waiting)
