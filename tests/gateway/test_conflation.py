import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.gateway.conflation import newest_per_key
from streaming.gateway.elementqueue import ElementQueue
from tests.gateway.scenes import elements

ARRIVALS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 9)), min_size=1, max_size=60)


def newest(arrivals):
    """The oracle: of each key the highest version, in the order of arrival; of equal ones the last."""
    best = {}
    for place, (key, version) in enumerate(arrivals):
        if key not in best or version >= best[key][0]:
            best[key] = (version, place)
    return [arrivals[place] for place in sorted(place for _, place in best.values())]


def rows(table):
    return list(zip(table["key"].to_pylist(), table["version"].to_pylist(), strict=True))


@given(ARRIVALS)
def test_the_newest_element_of_each_object_survives_conflation(arrivals):
    assert rows(newest_per_key(elements(*zip(*arrivals, strict=True)))) == newest(arrivals)


@given(ARRIVALS, st.integers(1, 8), st.data())
async def test_a_live_queue_counts_exactly_what_it_merged_and_keeps_every_newest(arrivals, bound, data):
    queue = ElementQueue(bound, True, asyncio.Event())
    waiting = list(arrivals)
    while waiting:
        cut = data.draw(st.integers(1, len(waiting)))
        await queue.put(elements(*zip(*waiting[:cut], strict=True)), 0)
        waiting = waiting[cut:]
    taken = rows(queue.take(1_000)[0])
    assert len(taken) + queue.merged == len(arrivals)
    assert newest(taken) == newest(arrivals)
    assert len(taken) <= max(bound, 2 * 5)


async def test_a_waiting_queue_makes_its_recording_wait_and_loses_nothing():
    queue = ElementQueue(10, False, asyncio.Event())
    await queue.put(elements(["a"] * 10, range(10)), 1)
    second = asyncio.create_task(queue.put(elements(["a"], [10]), 2))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(second), 0.02)
    block, heard_us = queue.take(4)
    await second
    rest, last_heard_us = queue.take(1_000)
    assert rows(block) + rows(rest) == [("a", version) for version in range(11)]
    assert (heard_us, last_heard_us, queue.merged) == (1, 2, 0)


async def test_a_block_that_was_put_back_comes_first_again():
    queue = ElementQueue(100, True, asyncio.Event())
    await queue.put(elements(["a", "b"], [1, 2]), 1)
    block = queue.take(1)
    queue.put_back(*block)
    assert rows(queue.take(10)[0]) == [("a", 1), ("b", 2)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(1, 9))
async def test_blocks_hold_at_most_what_was_asked_and_keep_the_order(sizes, most):
    queue = ElementQueue(1_000, False, asyncio.Event())
    for heard_us, size in enumerate(sizes):
        await queue.put(elements(["a"] * size, [heard_us] * size), heard_us)
    taken = []
    while queue.rows:
        block, heard_us = queue.take(most)
        assert block.num_rows <= most
        assert heard_us == max(block["version"].to_pylist())
        taken += rows(block)
    assert taken == [("a", heard_us) for heard_us, size in enumerate(sizes) for _ in range(size)]
