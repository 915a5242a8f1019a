"""Answers in the past: those of brute force at every second, wherever pages are cut, also from a child process."""

import itertools
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from bench.live import PATIENCE_S, wait_for
from streaming.backtest import BacktestRequest, Playing, StoredElements
from streaming.elements import point_elements
from streaming.history import History
from streaming.plans import parse_plan
from streaming.replay.answers import AnswerPages, scene, told_at_once
from streaming.replay.sessions import InvalidReplay, ReplayPlan, Session, Sessions
from streaming.results import LEFT, read_frame
from streaming.spaces import EARTH, space_document
from tests.history.test_tables import STREAM
from tests.replay.test_elements import AGE_US, BEGINNING, S, keep

TTL_S = 6.0
MEMORY_BYTES = 2 << 30
BOX = {"lo": [170, -10], "hi": [190, 10]}
PLANS = {
    1: {"stream": STREAM, "compare": BOX},
    2: {"stream": STREAM, "kind": "rule", "when": {"query": 1}, "for_s": 2},
    3: {"stream": STREAM, "compare": BOX, "aggregate": {"function": "count"}},
}
SPAN = BEGINNING + 20 * S, BEGINNING + 60 * S


@pytest.fixture(scope="module")
def told():
    """Reports of some objects, as key, time heard and longitude: at any moment, in and out, with silence."""
    rng = np.random.default_rng(5)
    heard = np.sort(BEGINNING + rng.integers(0, 62 * S, 400))
    keys = rng.choice([f"bus {number}" for number in range(12)], 400, p=[0.01] * 4 + [0.12] * 8)
    return list(
        zip(keys.tolist(), heard.tolist(), rng.choice([165.0, 172.0, -175.3, -160.0], 400).tolist(), strict=True)
    )


@pytest.fixture(scope="module")
def root(tmp_path_factory, told):
    """The folder of a history of these reports."""
    keys, heard, lon = zip(*told, strict=True)
    places = np.column_stack([lon, np.zeros(len(lon))])
    folder = tmp_path_factory.mktemp("history")
    keep(folder, point_elements(STREAM, keys, np.array(heard) - AGE_US, places, [{}] * len(keys)))
    return folder


def members(told, at_us):
    """Return, by brute force, who is in the box at a time."""
    last = {key: (heard, lon) for key, heard, lon in told if heard < at_us}
    return {key for key, (heard, lon) in last.items() if (lon >= 170 or lon <= -170) and heard + TTL_S * S >= at_us}


def pages(root, queries, ends, rows=10**9):
    """Return the pages of answers up to some times, one after the other."""
    asked = BacktestRequest(PLANS, SPAN, {STREAM: TTL_S})
    playing = AnswerPages(Playing(asked), StoredElements(History(root, EARTH), asked), queries)
    found = []
    for end in ends:
        while not found or found[-1].until_us < end:
            found.append(playing.page(end, rows, 60.0))
    return found


def rows_of(found):
    names = ("at_us", "query", "sign", "key", "time_us", "reason", "properties")
    return [row for page in found for row in zip(*(page.rows[name].to_pylist() for name in names), strict=True)]


@pytest.mark.long
def test_the_answer_at_each_second_is_that_of_brute_force(root, told):
    found = pages(root, [1], [SPAN[1]])
    assert (found[0].begins, found[-1].until_us) == (True, SPAN[1])
    answer, rows, changes = set(), iter(rows_of(found)), 0
    following = next(rows, None)
    for at_us in range(SPAN[0], SPAN[1] + 1, S):
        while following and following[0] <= at_us:
            _, _, sign, key, *_ = following
            answer = answer - {key} if sign == LEFT else answer | {key}
            following, changes = next(rows, None), changes + 1
        assert answer == members(told, at_us), f"{(at_us - BEGINNING) // S} s"
    assert changes > 60


# One of each kind whose answer follows from where objects are, and of some that need the time before.
AT_ONCE = {
    1: PLANS[1],
    3: PLANS[3],
    4: {"stream": STREAM, "kind": "knn", "around": {"at": [172, 0]}, "k": 3},
    5: {"stream": STREAM, "around": {"key": "bus 7", "radius": 1_000_000}},
    6: {"stream": STREAM, "kind": "join", "join": {"stream": STREAM, "predicate": "dwithin", "distance": 100_000}},
}
LATER = {
    2: PLANS[2],
    7: {
        "stream": STREAM,
        "kind": "encounter",
        "for_s": 2,
        "join": {"stream": STREAM, "predicate": "dwithin", "distance": 9},
    },
}


def answers_of(found, at_us):
    """Return the answer of each query at a time, as pages tell it."""
    answers = {}
    for page in found:
        names = ("at_us", "query", "sign", "key", "partner", "properties")
        for told_us, query, sign, *what in zip(*(page.rows[name].to_pylist() for name in names), strict=True):
            if told_us > at_us:
                break
            key, partner, properties = what
            answer = answers.setdefault(query, {})
            answer.pop((key, partner), None)
            if sign != LEFT:
                answer[key, partner] = properties if query == 3 else None  # the figure
    return answers


@pytest.mark.long
def test_the_scene_is_what_pages_from_long_before_lead_to(root):
    assert all(told_at_once(parse_plan(plan, EARTH)) for plan in AT_ONCE.values())
    assert not any(told_at_once(parse_plan(plan, EARTH)) for plan in LATER.values())
    at_us = BEGINNING + 40 * S
    page, led = (
        answers_of(told, at_us)
        for told in (
            [scene(*playing_of(root, AT_ONCE, (at_us, at_us + 1)), AT_ONCE)],
            [AnswerPages(*playing_of(root, AT_ONCE | LATER, SPAN), AT_ONCE).page(at_us, 10**9, 600.0)],
        )
    )
    assert page == led and page.keys() == AT_ONCE.keys()


def playing_of(root, plans, span):
    asked = BacktestRequest(plans, span, {STREAM: TTL_S})
    return Playing(asked), StoredElements(History(root, EARTH), asked)


@pytest.mark.long
def test_pages_together_tell_the_same_wherever_they_are_cut(root):
    whole = rows_of(pages(root, PLANS, [SPAN[1]]))
    assert {query for _, query, *_ in whole} == {1, 2, 3}
    for rows in (1, 7, 50):
        cut = pages(root, PLANS, range(SPAN[0] + 7 * S, SPAN[1] + 1, 11 * S // 2), rows)
        cut += pages(root, PLANS, [SPAN[1]], rows)[len(cut) :] if cut[-1].until_us < SPAN[1] else []
        assert [page.begins for page in cut] == [True] + [False] * (len(cut) - 1)
        assert all(before.until_us == after.from_us for before, after in itertools.pairwise(cut))
        within = [row for row in whole if row[0] <= cut[-1].until_us]
        assert rows_of(cut) == within
        for page in cut:
            at = page.rows["at_us"].to_numpy()
            assert ((at > page.from_us) | page.begins).all() and (at <= page.until_us).all()


@pytest.mark.long
def test_a_rule_is_played_with_the_queries_that_it_names_and_only_the_rule_is_told(root):
    assert {query for _, query, *_ in rows_of(pages(root, [2], [SPAN[1]]))} == {2}


@pytest.fixture
def played(root, tmp_path):
    """What a session plays."""
    plans = {str(number): plan for number, plan in PLANS.items()}
    about = {
        "ttl_s": {STREAM: TTL_S},
        "space": space_document(EARTH),
        "history": str(root),
        "layers_folder": str(tmp_path),
    }
    return ReplayPlan((1, 2, 3), plans, plans, {"9": "is not played"}, *SPAN, **about)


@pytest.mark.long
def test_a_session_tells_pages_that_follow_each_other_and_ends(root, played):
    session = Session(played, MEMORY_BYTES)
    frames = [read_frame(session.page(SPAN[0] + seconds * S, 1000, 60.0, 60.0)) for seconds in (10, 30, 40)]
    assert [head["begins"] for head, _ in frames] == [True, False, False]
    assert [(head["from_us"] - SPAN[0]) // S for head, _ in frames] == [0, 10, 30]
    assert frames[0][0] | {"begins": 0, "from_us": 0, "until_us": 0} == {
        "type": "replay.answers",
        "begins": 0,
        "from_us": 0,
        "until_us": 0,
        "queries": [1, 2, 3],
        "refused": {"9": "is not played"},
    }
    told = [key for _, rows in frames for key in rows["key"].to_pylist()]
    assert told == [row[3] for row in rows_of(pages(root, PLANS, [SPAN[1]]))]
    session.end()
    with pytest.raises(InvalidReplay, match="this one has ended"):
        session.page(SPAN[1], 1, 1.0, 1.0)


@pytest.mark.long
def test_a_session_tells_the_answers_at_a_time_without_going_on(root, played):
    session = Session(played, MEMORY_BYTES)
    at_us = SPAN[0] + 20 * S
    head, rows = read_frame(session.scene(at_us, 60.0))
    assert (head["begins"], head["from_us"], head["until_us"], head["queries"]) == (True, at_us, at_us, [1, 3])
    assert set(rows["at_us"].to_pylist()) == {at_us} and set(rows["query"].to_pylist()) == {1, 3}
    head, _ = read_frame(session.page(SPAN[0] + 5 * S, 1000, 60.0, 60.0))
    assert (head["begins"], head["from_us"], head["queries"]) == (True, SPAN[0], [1, 2, 3])
    session.end()
    rules = Session(replace(played, queries=(2,)), MEMORY_BYTES)
    head, rows = read_frame(rules.scene(at_us, 60.0))
    assert (head["queries"], rows.num_rows) == ([], 0)
    rules.end()


def test_what_cannot_be_played_is_said_by_the_session(played):
    wrong = Session(replace(played, plans={"1": {"stream": STREAM, "compare": "everywhere"}}), MEMORY_BYTES)
    with pytest.raises(InvalidReplay, match="compare must be an object"):
        wrong.page(SPAN[1], 1, 1.0, 60.0)


@pytest.mark.long
def test_a_session_goes_on_if_it_is_asked_for_what_follows_and_begins_anew_otherwise(played):
    sessions = Sessions(1, 600, MEMORY_BYTES)

    def of(name, from_us, same=True):
        return sessions.of(name, from_us, lambda _: same, lambda: replace(played, from_us=from_us))

    first = of("ann", SPAN[0])
    assert of("ann", SPAN[0]) is first
    first.page(SPAN[0] + 5 * S, 1000, 60.0, 60.0)
    assert of("ann", SPAN[0] + 5 * S) is first
    other = of("ann", SPAN[0] + 7 * S)
    assert other is not first and first.ended
    assert of("ann", SPAN[0] + 7 * S, same=False) is not other
    last = of("bob", SPAN[0])
    assert of("bob", SPAN[0]) is last
    sessions.end()
    assert last.ended


def test_a_session_that_nobody_asks_ends_by_itself(played):
    idle = Sessions(1, 0.2, MEMORY_BYTES).of("ann", SPAN[0], bool, lambda: played)
    wait_for(lambda: idle.ended, "its end")


def test_who_goes_to_another_time_does_not_wait_for_the_page_of_the_one_before(played):
    sessions = Sessions(1, 600, MEMORY_BYTES)
    session = sessions.of("ann", SPAN[0], bool, lambda: played)
    sessions.leave("ann", SPAN[0] + S)
    assert not session.ended, "nobody waits for it"
    os.kill(session._child._process.pid, signal.SIGSTOP)  # it takes long

    def ask():
        with pytest.raises(InvalidReplay, match=r"this one (has )?ended"):
            session.page(SPAN[1], 1000, 60.0, 600.0)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: session.busy, "it to ask")
    sessions.leave("ann", SPAN[0])
    assert not session.ended, "it is the page that is asked for"
    sessions.leave("ann", SPAN[0] + S)
    asking.join(PATIENCE_S)
    assert session.ended and not asking.is_alive()


def test_a_session_ends_at_once_although_somebody_waits_for_its_page(played):
    """Others would wait for that page, too: they share the list of sessions."""
    sessions, told = Sessions(1, 600, MEMORY_BYTES), []
    session = sessions.of("ann", SPAN[0], bool, lambda: played)
    os.kill(session._child._process.pid, signal.SIGSTOP)  # it takes long

    def ask():
        with pytest.raises(InvalidReplay, match=r"this one (has )?ended"):
            session.page(SPAN[1], 1000, 60.0, 600.0)
        told.append(True)

    asking = threading.Thread(target=ask)
    asking.start()
    wait_for(lambda: session.busy, "it to ask")
    other = sessions.of("bob", SPAN[0], bool, lambda: played)
    asking.join(PATIENCE_S)
    assert told and session.ended and not other.ended
    sessions.end()
