"""The quarantine: who is blamed for a step that does not end, from which batch on, and until when."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.engine.quarantine import (
    FILE,
    Quarantine,
    Quarantined,
    Suspicion,
    home_place,
    read_quarantine,
    write_quarantine,
)
from streaming.engine.slots import NamedStep
from streaming.servers.control.border import PROBES, Border
from streaming.servers.control.registry import Applied, Registry
from streaming.servers.control.step import ControlStep
from streaming.spaces import EARTH
from streaming.state.stores import LocalStore

LIMIT_S, BATCH, PLACE, MOST_ENDS = 60.0, 7, 1, 9
NOBODY = Quarantine("e")


def endless(answers=0, *queries, batch=BATCH, place=PLACE, whole=True, fatal=False):
    return NamedStep(1, 1, batch, place, answers, tuple((query, 1) for query in queries), whole, fatal)


def registry(queries):
    """Return a registry of queries that lie apart; ten queries share each answer if there are more than 1000."""
    alike = 10 if len(queries) > 1000 else 1
    plans = {
        query: {"stream": "ships", "compare": {"lo": [0, 0], "hi": [1, 1 + place // alike / 100]}}
        for place, query in enumerate(queries)
    }
    entries = [{"op": "register", "query": query, "revision": 1, "plan": plan} for query, plan in plans.items()]
    return Registry(EARTH).apply(entries)[0]


class Ended(BaseException):
    """The process was killed."""


class Machine:
    """Runs one step of a batch again and again, with a watchdog, until it ends."""

    def __init__(self, known, hostile, together=(), needed_s=0.0):
        self.known, self.hostile, self.together, self.needed_s = known, set(hostile), set(together), needed_s
        self.quarantine, self.ends, self.named = NOBODY, 0, None

    def begin(self, answers, queries):
        self.named = endless(answers)._replace(queries=tuple(queries))

    def step(self, control):
        asked = set(control.after.ids.tolist())
        slow = self.together and self.together <= asked and self.limit_s < self.needed_s
        if self.hostile & asked or slow:
            raise Ended
        return asked

    @property
    def limit_s(self):
        known = self.quarantine.suspicion(BATCH, PLACE)
        return known.limit_s if known else LIMIT_S

    def run(self):
        while True:
            watched = replace(self.quarantine.watched(PLACE, BATCH, None), begin=self.begin)
            try:
                return Border(ControlStep(self.known, self.known, Applied(), 0), {}, watched).passed(self.step)
            except Ended:
                self.ends += 1
                assert self.ends < MOST_ENDS
                self.quarantine = self.quarantine.noticed(self.named, LIMIT_S).settled("e", BATCH - 1, {}, 1)


@pytest.mark.parametrize("count", [1, 2, 99, 250])
def test_exactly_the_query_that_does_not_end_is_left_out_after_a_few_ends(count):
    queries = list(range(1, count + 1))
    hostile = queries[count // 2]
    machine = Machine(registry(queries), {hostile})
    assert machine.run() == set(queries) - {hostile}
    assert [(one.query, one.revision) for one in machine.quarantine.queries] == [(hostile, 1)]
    assert machine.ends == (2 if count < 2 * PROBES else 3)


def test_all_queries_that_share_the_answer_are_left_out():
    queries = list(range(1, 1011))
    machine = Machine(registry(queries), {57})
    assert machine.run() == set(queries) - set(range(51, 61))
    assert machine.ends == 2


def test_a_second_one_in_the_same_step_takes_one_end_more():
    machine = Machine(registry(range(1, 21)), {3, 17})
    assert machine.run() == set(range(1, 21)) - {3, 17}
    assert machine.ends == 3


def test_nobody_is_blamed_for_what_ends_for_each_query_alone_and_the_step_gets_twice_the_time():
    machine = Machine(registry(range(1, 4)), (), together={1, 2, 3}, needed_s=7 * LIMIT_S)
    assert machine.run() == {1, 2, 3}
    assert machine.quarantine.queries == ()
    assert (machine.ends, machine.limit_s) == (4, 8 * LIMIT_S)


def test_a_part_that_has_no_room_in_the_slot_narrows_nothing():
    known = NOBODY.noticed(endless(), LIMIT_S)
    assert known.noticed(endless(5, 1, 2, whole=False), LIMIT_S) == known
    assert known.noticed(endless(5, 2, 1), LIMIT_S).suspicions == (Suspicion(BATCH, PLACE, LIMIT_S, (1, 2)),)


def test_a_fatal_step_gets_no_more_time_and_the_owner_is_told_what_it_did():
    known = NOBODY.noticed(endless(fatal=True), LIMIT_S)
    assert known.noticed(endless(fatal=True), LIMIT_S) == known
    (fatal,) = known.noticed(endless(1, 9, fatal=True), LIMIT_S).queries
    (slow,) = known.noticed(endless(1, 9), LIMIT_S).queries
    assert "did not end within 60 s" in slow.why and "ended the process" in fatal.why


@given(
    told=st.dictionaries(st.integers(0, 3) | st.just(256), st.integers(5, 8)),
    place=st.integers(0, 3) | st.just(256) | st.just(home_place(0)),
)
def test_no_server_but_the_one_that_did_not_end_leaves_a_query_out_in_a_batch_that_it_has_told(told, place):
    known = NOBODY.noticed(endless(1, 9, place=place), LIMIT_S).settled("e", 4, told, 2)
    (out,) = known.queries
    for server in {*told, 0, 1, 2, 3, 256} - {place}:
        assert [out.is_out(server, batch) for batch in range(5, 10)] == [
            batch >= BATCH and batch > told.get(server, -1) for batch in range(5, 10)
        ]
    assert out.is_out(place, BATCH) and not out.is_out(place, BATCH - 1)
    newest = max(told.values(), default=-1)  # what a home server sent has been told as soon as a region has
    assert out.is_out(home_place(1), BATCH) == (newest < BATCH)
    assert out.everywhere <= max(BATCH, newest + 1)
    assert known.settled("e", 4, {0: 100}, 2).queries == known.queries


def test_an_engine_that_begins_anew_leaves_out_from_the_first_batch_on_and_suspects_nobody():
    known = NOBODY.noticed(endless(), LIMIT_S).noticed(endless(1, 9), LIMIT_S).settled("e", 4, {0: 8}, 2)
    anew = known.settled("f", -1, {}, 2)
    assert [one.is_out(0, 0) for one in anew.queries] == [True]
    assert (anew.epoch, anew.suspicions) == ("f", ())


def test_a_suspicion_ends_with_its_batch_and_a_quarantine_when_no_state_that_is_kept_runs_the_revision():
    known = NOBODY.noticed(endless(1, 9), LIMIT_S).settled("e", 4, {0: 8}, 2)
    assert known.suspicions and not known.settled("e", BATCH, {}, 2).suspicions
    assert known.without(BATCH, lambda query: None).queries == known.queries
    assert known.without(20, {9: 1}.get).queries == known.queries
    assert known.without(20, {9: 2}.get).queries == known.without(20, {}.get).queries == ()


def test_a_quarantine_that_is_written_is_read_again(tmp_path):
    files = LocalStore(tmp_path)
    assert read_quarantine(files) == Quarantine()
    out = (Quarantined(9, 2, 7, 1, 60.0, True, {0: 8, -1: 8}), Quarantined(10, 1, 7, 1, 60.0))
    known = Quarantine("e", out, (Suspicion(7, 1, 120.0, (4, 5)),))
    write_quarantine(files, known)
    assert read_quarantine(files) == known


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"epoch": "e"}', b'{"epoch": 1, "queries": [{}]}'])
def test_a_damaged_file_stops_no_engine(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    assert read_quarantine(LocalStore(tmp_path)) == Quarantine()
