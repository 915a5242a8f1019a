"""The alarms of rules that begin and end in a micro-batch, as result tuples."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import orjson
import pyarrow as pa

from streaming.elements import bounds_array, bounds_of, key_hashes
from streaming.kinds.base import Plan
from streaming.kinds.registry import kind_of
from streaming.kinds.rule.plan import RulePlan
from streaming.operators.rules import LOST, number_of
from streaming.operators.runs import find
from streaming.results import CANCELLED, EDITED, ENTERED, LEFT, MOVED, REGISTERED, SNAPSHOT, result_schema
from streaming.servers.answers.members import Answers
from streaming.servers.answers.names import names_of
from streaming.servers.answers.rows import alarm_rows
from streaming.servers.control.registry import Registry
from streaming.servers.control.step import ControlStep
from streaming.servers.region.all_regions import AllRegions
from streaming.servers.sorted_runs import SortedRuns
from streaming.servers.ways.rules.entries import ALARM, WHOLE, RuleEntries
from streaming.servers.ways.rules.numbers import Numbers
from streaming.spaces import Space

# Given a rule, returns the box of its alarm, and the properties, a JSON object.
Told = Callable[[int], tuple[Sequence[float] | np.ndarray, str]]


class Alarms:
    """The alarms of one micro-batch, in the order in which they are told.

    Parameters
    ----------
    control : ControlStep
    all_regions : AllRegions
    lasting : pyarrow.Table
        The tuples with which the alarms by a rate, and those about whole answers or silence, began that last, and those
        of objects that a rule about silence misses and that are in no region any more.
    stopped : ndarray of bool, shape (R,)
        Which rules name a query that does not run.
    """

    def __init__(self, control: ControlStep, all_regions: AllRegions, lasting: pa.Table, stopped: np.ndarray) -> None:
        self._control, self._all, self._lasting, self._stopped = control, all_regions, lasting, stopped
        self._rules, self._space = control.after.rules, control.after.space
        self._tuples: list[tuple[np.ndarray, ...]] = []

    def tell(self, entries: RuleEntries, sign: int, time_us: np.ndarray, unknown: np.ndarray | None = None) -> None:
        """Note alarms that begin or end; see `rule_entries.Tell`."""
        rule = entries["rule"]
        reason = np.full(len(rule), MOVED)
        if sign == ENTERED and len(self._control.applied.changed):
            begun = find(self._control.applied.changed, rule)[1]
            before = find(self._control.before.rules.ids, rule)[1]
            reason = np.where(begun, np.where(before, EDITED, REGISTERED), MOVED)
        if unknown is not None:
            reason[unknown & self._stopped[self._rules.place_of(rule)[0]]] = CANCELLED
        heard_us = entries["heard_us"] if sign == ENTERED else np.zeros_like(time_us)
        self.note(rule, entries["object"], sign, reason, time_us, heard_us)

    def note(
        self,
        rule: np.ndarray,
        key: np.ndarray,
        sign: int,
        reason: np.ndarray,
        time_us: np.ndarray,
        heard_us: np.ndarray,
    ) -> None:
        """Note alarms of rules and objects, each of shape (K,), that begin or end for a reason at a time.

        Those about silence have the times at which the objects had been heard, others have 0.
        """
        if len(rule):
            self._tuples.append((rule, key, np.full(len(rule), sign), reason, time_us, heard_us))

    def rows(self, numbers: Numbers) -> pa.Table:
        """Return the alarms as result tuples in their order, with their objects, or numbers, as they are now."""
        if not self._tuples:
            return result_schema(self._space).empty_table()
        rule, key, sign, reason, time_us, heard_us = (
            np.concatenate(column) for column in zip(*self._tuples, strict=True)
        )
        table, known = self._objects(rule, key)
        table = with_whole(table, rule[known], key[known] == WHOLE, self._fresh(numbers))
        told = {"query": rule, "sign": sign.astype(np.int8), "reason": reason.astype(np.int8), "time_us": time_us}
        return _since(with_columns(table, {name: column[known] for name, column in told.items()}), heard_us[known])

    def lost(self, entries: Sequence[tuple[np.ndarray, np.ndarray]]) -> pa.Table:
        """Return tuples of objects that rules miss and that are in no region any more, to be kept; see `lasting`."""
        tables = [result_schema(self._space).empty_table()]
        for rule, key in entries:
            table, known = self._objects(rule, key)
            tables.append(with_columns(table, {"query": rule[known], "sign": np.full(len(table), ENTERED, np.int8)}))
            for one in np.unique(rule[~known]).tolist():
                tables.append(self._expected(one, key[~known & (rule == one)]))
        return pa.concat_tables(tables)

    def _expected(self, rule: int, keys: np.ndarray) -> pa.Table:
        """Return tuples of objects that a rule expects, of which nothing else is known."""
        plan = _plan(rule, self._control)
        hashes = key_hashes(plan.stream, list(plan.when.expected)) if plan.when.expected else keys[:0]
        named = np.flatnonzero(np.isin(hashes, keys))
        rows = alarm_rows(hashes[named], self._space)
        columns = {"query": np.full(len(named), rule), "sign": np.full(len(named), ENTERED, dtype=np.int8)}
        names = np.array([plan.when.expected[place] for place in named.tolist()], dtype=object)
        return with_columns(rows, columns | {"key": names})

    def _objects(self, rule: np.ndarray, key: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """Return tuples with objects as they are now, or as they were told last, and which of them (K,) are known."""
        unique, place = np.unique(key, return_inverse=True)
        zeros = np.zeros(len(unique), dtype=np.int64)
        whole = alarm_rows(unique[unique == WHOLE], self._space)
        objects = self._lasting.filter(pa.array(self._lasting["key_hash"].to_numpy() != WHOLE))
        table = pa.concat_tables([self._all.rows(Answers(unique, zeros, zeros), zeros), objects, whole])
        key_hash = table["key_hash"].to_numpy()
        order = np.argsort(key_hash, kind="stable")
        at, known = (found[place] for found in find(key_hash[order], unique))
        return table.take(pa.array(order[at[known]])), known

    def _fresh(self, numbers: Numbers) -> Told:
        """Return what gives the place of an alarm about whole answers, and its properties, as they are now."""
        known = dict(zip(map(tuple, numbers.keys.tolist()), numbers.known().tolist(), strict=True))

        def told(rule: int) -> tuple[np.ndarray, str]:
            plan = _plan(rule, self._control)
            return _place(plan, self._control), orjson.dumps(_figures(plan, known)).decode()

        return told

    def lasting(self, new: pa.Table, entries: SortedRuns) -> pa.Table:
        """Return the tuples with which alarms began that last, given what is new and the entries; see the class."""
        place, kept = self._rules.place_of(new["query"].to_numpy())
        at = place[kept]
        kept[kept] = (self._rules.within_us[at] > 0) | self._rules.whole[at] | (self._rules.silent_us[at] > 0)
        begun = new.filter(pa.array(kept & (new["sign"].to_numpy() == ENTERED)))
        rows = pa.concat_tables([self._lasting, begun])
        name = names_of(rows["query"].to_numpy(), rows["key_hash"].to_numpy())
        # Of an alarm that ended and began again, the newest.
        newest = np.sort(len(name) - 1 - np.unique(name[::-1], return_index=True)[1])
        rows = rows.take(pa.array(newest))
        names, of = np.unique(name[newest], return_inverse=True)
        part, row = entries.find(names)
        lasts = part >= 0
        found = entries.take(part[lasts], row[lasts], ("rule", "phase", "bits"))
        silent = self._rules.silent_us[self._rules.place_of(found["rule"])[0]] > 0
        lasts[lasts] = (found["phase"] == ALARM) | silent & (found["bits"] & LOST != 0)
        return rows.filter(pa.array(lasts[of]))

    def snapshots(self, entries: SortedRuns, over: pa.Table, lasting: pa.Table) -> pa.Table:
        """Return the whole answers of the rules whose snapshots were asked for, as they were told: without `over`."""
        asked = np.unique(np.array(self._control.applied.snapshots, dtype=np.int64))
        asked = asked[find(self._rules.ids, asked)[1]]
        if not len(asked):
            return result_schema(self._space).empty_table()
        part, row = entries.select(lambda run: (run.columns["phase"] == ALARM) & find(asked, run.columns["rule"])[1])
        found = entries.take(part, row)
        waiting, first = np.unique(names_of(over["query"].to_numpy(), over["key_hash"].to_numpy()), return_index=True)
        told = ~find(waiting, names_of(found["rule"], found["object"]))[1]
        rule = found["rule"][told]
        key = found["object"][told]
        objects, known = self._objects(rule, key)
        about = lasting.filter(pa.array(lasting["key_hash"].to_numpy() == WHOLE))
        begun = dict(zip(about["query"].to_pylist(), about.select(["bounds", "properties"]).to_pylist(), strict=True))
        objects = with_whole(objects, rule[known], key[known] == WHOLE, lambda one: tuple(begun[one].values()))
        rows = _since(with_columns(objects, {"query": rule[known]}), found["heard_us"][told][known])
        # Of alarms whose next tuple waits, only those that it ends were told.
        next_told = over.take(pa.array(first))
        ends = (next_told["sign"].to_numpy() == LEFT) & find(asked, next_told["query"].to_numpy())[1]
        rows = pa.concat_tables([rows, next_told.filter(pa.array(ends))])
        signs = {"sign": ENTERED, "reason": SNAPSHOT}
        return with_columns(rows, {name: np.full(rows.num_rows, sign, dtype=np.int8) for name, sign in signs.items()})


def with_columns(table: pa.Table, columns: dict[str, np.ndarray]) -> pa.Table:
    """Return result tuples with other values in some columns."""
    for name, column in columns.items():
        field = table.schema.field(name)
        table = table.set_column(table.schema.get_field_index(name), field, pa.array(column).cast(field.type))
    return table


def _since(table: pa.Table, heard_us: np.ndarray) -> pa.Table:
    """Return tuples with the times (K,) at which their objects had been heard before they were silent, 0 for none."""
    place = table.schema.get_field_index("since_us")
    return table.set_column(place, table.schema.field(place), pa.array(heard_us, mask=heard_us == 0))


def with_whole(table: pa.Table, rule: np.ndarray, whole: np.ndarray, told: Told) -> pa.Table:
    """Return the tuples of alarms of rules (K,) with places and properties where they are about `whole` answers.

    Parameters
    ----------
    table : pyarrow.Table
    rule : ndarray of int64, shape (K,)
    whole : ndarray of bool, shape (K,)
    told : callable
        Given a rule, returns the box of its alarm, and the properties, a JSON object.
    """
    rows = np.flatnonzero(whole)
    if not len(rows):
        return table
    bounds, properties = bounds_of(table["bounds"]).copy(), table["properties"].to_pylist()
    for row in rows.tolist():
        bounds[row], properties[row] = told(int(rule[row]))
    table = with_columns(table, {"properties": np.array(properties, dtype=object)})
    place = table.schema.get_field_index("bounds")
    return table.set_column(place, table.schema.field(place), bounds_array(bounds))


def _plan(rule: int, control: ControlStep) -> RulePlan:
    """Return the plan of a rule, also of one that has ended."""
    rules = [registry.rule_plans for registry in (control.after, control.before)]
    return next(plans[rule] for plans in rules if rule in plans)


def _figures(plan: RulePlan, known: Mapping[tuple[int, ...], float]) -> dict[str, float | str | None]:
    """Return the numbers that a rule looks at, as the properties of its alarm; None where one is not known.

    That of a stream that is silent has the stream.
    """
    if plan.silent:
        return {"stream": plan.stream}
    figures: dict[str, float | str | None] = {}
    for term, name in plan.figures.items():
        number = known.get((term.query, number_of(term)), np.nan)
        figures[name] = None if np.isnan(number) else int(number) if term.operator == "count" else number
    return figures


def _place(plan: RulePlan, control: ControlStep) -> np.ndarray:
    """Return the middle of the area of the first query that a rule names and that has one, as a box.

    The box has no bounds in a dimension in which the area has none, and nowhere if no query has an area.
    """
    for query in plan.queries:
        watched = next((found for found in map(_running(query), (control.after, control.before)) if found), None)
        if watched is not None and (middle := _middle(watched, control.after.space)) is not None:
            return middle
    return control.after.space.whole()


def _running(query: int) -> Callable[[Registry], Plan | None]:
    return lambda registry: registry.plan(query) if registry.runs(query) else None


def _middle(plan: Plan, space: Space) -> np.ndarray | None:
    """Return the middle of the area of a query as a box, None if it has no area."""
    kind = kind_of(plan)
    focus, box = kind.focus(plan), np.array(space.whole(), dtype=np.float64)
    if focus is not None:
        middle = np.r_[focus.at, np.full(space.n - len(focus.at), np.nan)] if focus.at else np.full(space.n, np.nan)
    else:
        area = np.array(kind.box(plan), dtype=np.float64)
        low, high = area[: space.n], area[space.n :]
        with np.errstate(invalid="ignore"):
            middle = (low + high) / 2
        middle[~np.isfinite(middle) | (low <= _ends(space, "lo")) & (high >= _ends(space, "hi"))] = np.nan
        for axis, dimension in enumerate(space.dimensions):
            if dimension.wraps and middle[axis] > dimension.hi:
                middle[axis] -= dimension.extent
    known = ~np.isnan(middle)
    if not known[:2].all():
        return None
    box[np.r_[known, known]] = np.r_[middle[known], middle[known]]
    return box


def _ends(space: Space, side: str) -> np.ndarray:
    return np.array([getattr(dimension, side) for dimension in space.dimensions])
