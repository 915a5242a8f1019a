"""What a batch writes, and what it looks at, follows its updates, not the number of objects."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import point_elements
from streaming.servers.control.registry import FOREVER_US, Registry
from streaming.servers.region import expiry
from streaming.servers.region.expiry import Deadlines
from streaming.servers.sorted_runs import SortedRuns
from streaming.spaces import EARTH
from streaming.state.stores import LocalStore
from tests.draws import examples
from tests.servers.harness import Engine

OBJECTS, UPDATES, BATCHES = 60_000, 600, 120
NONE = np.empty(0, dtype=np.int64)


def reports(rng, numbers, version):
    """Return the reports of some ships, each somewhere in the box of the query or beside it."""
    places = rng.uniform(-10, 10, (len(numbers), 2))
    properties = [{"speed": 12, "course": 270, "name": f"ship {number}"} for number in numbers]
    return point_elements("ships", [f"{number}" for number in numbers], [version] * len(numbers), places, properties)


@pytest.mark.long
def test_the_bytes_that_batches_write_follow_the_updates(tmp_path, monkeypatch):
    written, put, add, append = [], LocalStore.put, LocalStore.add, LocalStore.append

    def counted_put(store, name, content, once=False):
        written.append(len(content))
        return put(store, name, content, once)

    def counted_add(store, folder, batch, content):
        written.append(content.size)
        return add(store, folder, batch, content)

    def counted_append(store, name, line):
        written.append(len(line))
        return append(store, name, line)

    rng, engine = np.random.default_rng(1), Engine(tmp_path, rescaled=0.0)
    for name, counted in {"put": counted_put, "add": counted_add, "append": counted_append}.items():
        monkeypatch.setattr(LocalStore, name, counted)
    plan = {"stream": "ships", "compare": {"lo": [0, 0], "hi": [5, 5]}}
    engine.run([], [{"op": "register", "query": 1, "revision": 1, "plan": plan}])
    for part in np.array_split(rng.permutation(OBJECTS), 6):
        engine.run([("ships", 0, reports(rng, part, 0))], [])
    written.clear()
    sent = 0
    for batch in range(1, BATCHES):
        table = reports(rng, rng.choice(OBJECTS, UPDATES, replace=False), batch)
        sent += table.nbytes
        engine.run([("ships", batch, table)], [])
    assert sum(written) < 10 * sent, sum(written) / sent


@examples(60)
@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.integers(0, 30), st.tuples(st.integers(1, 2), st.integers(0, 40)), max_size=10),
            st.integers(0, 8),
            st.sampled_from([{}, {1: 5}, {1: 5, 2: 12}, {2: 1}]),
        ),
        max_size=25,
    )
)
def test_the_objects_that_expire_are_those_whose_time_is_over(history):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(expiry, "BLOCK_ROWS", 2)
        like = {"stream": NONE, "heard_us": NONE}
        table, deadlines, truth, now = SortedRuns(like), Deadlines(), {}, 0
        for rows, passed, ttl_us in history:
            now, registry = now + passed, Registry(EARTH, ttl_us=ttl_us)
            key = np.array(sorted(rows), dtype=np.int64)
            stream, heard = (np.array([rows[k][part] for k in key.tolist()], dtype=np.int64) for part in (0, 1))
            new = len(rows.keys() - truth.keys())
            table = table.put(key, {"stream": stream, "heard_us": heard}, NONE, new)
            truth.update(rows)
            found, deadlines = deadlines.overdue(table, registry, now)
            late = {k for k, (stream, heard) in truth.items() if heard + ttl_us.get(stream, FOREVER_US) < now}
            assert sorted(found.tolist()) == sorted(late)
            if late:
                table = table.without(np.sort(found), newest=len(rows) > 0)
            for k in late:
                del truth[k]
            table = table.settled()
