"""A replay shows what brute force over all stored elements shows, at any time, however it is cut into pages."""

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from streaming.elements import box_elements, point_elements
from streaming.history import History, HistoryWriter, InvalidQuestion, Turn, writer
from streaming.replay.elements import PageRequest, ReplayLimits, heard_times, read_page
from streaming.results import LEFT
from streaming.spaces import EARTH
from tests.draws import examples
from tests.history.test_tables import NUMBER, STREAM, tracked

S = 1_000_000
BEGINNING = 1_795_305_590 * S  # ten seconds before 2026-11-22, so that elements are of two days
AREA = EARTH.box([170.0, -10.0], [190.0, 10.0])
LIFE_US = 6 * S

# What is heard is a day and some seconds old.
AGE_US = 86_403 * S

# Keys, seconds and places that come again: repeated times, silence, ways in and out, also across the antimeridian.
reports = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 30),
        st.sampled_from([165.0, 170.0, 179.9, -175.3, -160.0]),
        st.sampled_from([-12.0, 0.0, 10.0]),
    ),
    max_size=50,
)


def keep(root, elements, batches=5):
    """Store elements in some batches, of which the last are still pending."""
    kept = HistoryWriter(root, EARTH)
    elements = tracked(elements)
    heard = pa.array(elements["time_us"].to_numpy() + AGE_US)
    elements = elements.set_column(
        elements.schema.get_field_index("heard_us"), elements.schema.field("heard_us"), heard
    )
    cuts = np.linspace(0, elements.num_rows, batches + 1).astype(int)
    for batch, (start, stop) in enumerate(itertools.pairwise(cuts)):
        second = min(batch, batches - 3) * writer.MERGE_AFTER_S
        kept.store(Turn("e", 0, 1, batch, second * S), [elements.slice(start, stop - start)], {NUMBER: STREAM})


def stored(root, told):
    """Store reports as the engine would accept them, in the order in which they are heard."""
    told = sorted(told, key=lambda report: report[1])
    if told:
        keys, seconds, lon, lat = zip(*told, strict=True)
        times = BEGINNING + np.array(seconds) * S - AGE_US
        numbered = [{"n": f"{n:03}"} for n in range(len(told))]  # of equal times, the last of these counts
        keep(root, point_elements(STREAM, keys, times, np.column_stack([lon, lat]), numbered))
    return History(root, EARTH), told


def shown(told, at_us):
    """Return, by brute force, key, time and longitude of what is shown at a time."""
    last = {}
    for key, second, lon, lat in told:
        if BEGINNING + second * S <= at_us:
            last[key] = (BEGINNING + second * S, lon, lat)
    return {
        key: (time_us, lon)
        for key, (time_us, lon, lat) in last.items()
        if (lon >= 170 or lon <= -170) and abs(lat) <= 10 and at_us - time_us <= LIFE_US
    }


def told_in(page):
    columns = (page.rows[name].to_pylist() for name in ("sign", "key", "at_us", "bounds"))
    return [(sign, key, time_us, box[0]) for sign, key, time_us, box in zip(*columns, strict=True)]


def played(scene, changes, at_us):
    """Return what a client shows at a time that has applied the changes until then to a scene."""
    for sign, key, time_us, lon in changes:
        if time_us <= at_us:
            scene = scene | {key: (time_us, lon)} if sign != LEFT else {k: v for k, v in scene.items() if k != key}
    return {key: (time_us, lon) for key, (time_us, lon) in scene.items() if at_us - time_us <= LIFE_US}


def pages(history, from_us, to_us, limits, step_us=0):
    """Return the scene at the beginning of a span, and the changes of all its pages together."""
    scene, changes = None, []
    while scene is None or from_us < to_us:
        page = read_page(history, PageRequest(STREAM, AREA, from_us, to_us, LIFE_US, scene is None, step_us), limits)
        told = told_in(page)
        if scene is None:
            scene = {key: (time_us, lon) for _, key, time_us, lon in told[: page.scene]}
        else:
            assert page.scene == 0
        assert all(from_us < time_us <= page.until_us for _, _, time_us, _ in told[page.scene :])
        assert from_us < page.until_us <= to_us
        changes += told[page.scene :]
        from_us = page.until_us
    return scene, changes


@pytest.mark.long
@given(reports, st.integers(-1, 31), st.integers(1, 40), st.integers(1, 6), st.integers(20, 60))
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_scene_at_any_time_is_that_of_brute_force(tmp_path_factory, told, second, length, rows, read):
    history, told = stored(tmp_path_factory.mktemp("history"), told)
    from_us, to_us = BEGINNING + second * S, BEGINNING + (second + length) * S
    scene, changes = pages(history, from_us, to_us, ReplayLimits(rows=rows, read=read))
    for at_us in range(from_us, to_us + 1, S // 2):
        assert played(scene, changes, at_us) == shown(told, at_us)


@pytest.mark.long
@given(reports, st.integers(1, 6), st.integers(20, 60))
@examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pages_together_tell_the_same_wherever_they_are_cut(tmp_path_factory, told, rows, read):
    history, _ = stored(tmp_path_factory.mktemp("history"), told)
    span = BEGINNING + 3 * S, BEGINNING + 31 * S
    assert pages(history, *span, ReplayLimits(rows=rows, read=read)) == pages(history, *span, ReplayLimits())


@pytest.mark.long
@given(reports, st.integers(1, 6), st.integers(20, 60))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_thinned_out_shows_the_same_at_the_end_of_each_step(tmp_path_factory, told, rows, read):
    history, told = stored(tmp_path_factory.mktemp("history"), told)
    span, step_us = (BEGINNING + S, BEGINNING + 31 * S), 2 * S
    scene, changes = pages(history, *span, ReplayLimits(rows=rows, thinned=read), step_us)
    for end_us in range(BEGINNING + step_us - 1, span[1], step_us):
        assert played(scene, changes, end_us) == shown(told, end_us)


def test_a_page_that_is_thinned_out_does_not_end_within_a_step(tmp_path):
    history, told = stored(tmp_path, [("b", 6, 170.0, 0.0), ("b", 10, 165.0, 0.0), ("b", 11, 165.0, 0.0)])
    span, step_us = (BEGINNING + S, BEGINNING + 31 * S), 2 * S
    scene, changes = pages(history, *span, ReplayLimits(rows=1), step_us)
    assert played(scene, changes, BEGINNING + 12 * S - 1) == shown(told, BEGINNING + 12 * S - 1) == {}


def test_thinning_out_leaves_one_element_of_an_object_in_a_step(crowd):
    wanted = PageRequest(STREAM, AREA, BEGINNING - 1, BEGINNING + 60 * S - 1, LIFE_US, step_us=10 * S)
    page = read_page(crowd, wanted)
    assert (page.rows.num_rows, page.until_us) == (40 * 6, wanted.to_us)


@pytest.fixture
def crowd(tmp_path):
    """Forty objects, each told every second for a minute."""
    keys = [f"bus {number}" for number in range(40)] * 60
    times = BEGINNING + np.repeat(np.arange(60), 40) * S - AGE_US
    places = np.column_stack([np.linspace(171, 189, 2400), np.zeros(2400)])
    keep(tmp_path, point_elements(STREAM, keys, times, places, [{}] * 2400))
    return History(tmp_path, EARTH)


def test_a_page_is_bounded_and_says_where_the_next_begins(crowd):
    wanted = PageRequest(STREAM, AREA, BEGINNING + 10 * S, BEGINNING + 59 * S, LIFE_US)
    page = read_page(crowd, wanted, ReplayLimits(rows=100))
    assert (page.scene, page.rows.num_rows) == (40, 40 + 80)
    assert page.until_us == BEGINNING + 13 * S - 1
    assert read_page(crowd, wanted, ReplayLimits(read=130)).until_us == BEGINNING + 14 * S - 1


def test_too_much_is_refused_with_the_rule_and_the_value(crowd):
    wanted = PageRequest(STREAM, AREA, BEGINNING + 10 * S, BEGINNING + 59 * S, LIFE_US)
    with pytest.raises(InvalidQuestion, match="at most 39 objects of a stream at a time; got more"):
        read_page(crowd, wanted, ReplayLimits(objects=39))
    with pytest.raises(InvalidQuestion, match="at most 39 elements heard at one time; got more at 2026-"):
        read_page(crowd, wanted, ReplayLimits(read=39))
    with pytest.raises(InvalidQuestion, match="at most 279 elements of a stream; got 280 within a lifetime of 6 s"):
        read_page(crowd, wanted, ReplayLimits(scanned=279))


def test_boxes_are_in_an_area_that_they_touch(tmp_path):
    boxes = np.array([[168.0, 0, -np.inf, 170.0, 1, np.inf], [168.0, 0, -np.inf, 169.9, 1, np.inf]])
    keep(tmp_path, box_elements(STREAM, ["touches", "is near"], np.array([BEGINNING - AGE_US] * 2), boxes, [{}, {}]))
    page = read_page(History(tmp_path, EARTH), PageRequest(STREAM, AREA, BEGINNING, BEGINNING + S, LIFE_US))
    assert page.rows["key"].to_pylist() == ["touches"]


def test_the_times_of_what_is_stored(crowd, tmp_path):
    assert heard_times(crowd, STREAM) == (BEGINNING, BEGINNING + 59 * S)
    assert heard_times(crowd, "nothing") is None
    assert list(itertools.islice(crowd.streams(), 1)) == [STREAM]
