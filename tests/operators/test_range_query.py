"""Range queries match exactly what their definition says."""

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.elements import stream_number
from streaming.operators.elements import Elements
from streaming.operators.range_query import RangeQueries
from streaming.spaces import EARTH
from tests import strategies
from tests.draws import examples
from tests.oracle import satisfies

elements = st.tuples(st.sampled_from(strategies.STREAMS), strategies.boxes(), strategies.properties)


@pytest.mark.long
@examples(300)
@given(st.lists(strategies.plans(), max_size=6), st.lists(elements, max_size=8))
def test_pairs_are_those_that_satisfy_the_definition(plans, elements):
    texts = [orjson.dumps(properties).decode() for _, _, properties in elements]
    streams = np.array([stream_number(stream) for stream, _, _ in elements], dtype=np.int64)
    bounds = np.array([box for _, box, _ in elements]).reshape(len(elements), 6)
    cold = pa.table({"properties": pa.array(texts, pa.string())})

    row, query = RangeQueries(plans, EARTH).match(Elements(streams, bounds, cold.take))

    expected = {
        (number, position)
        for number, (stream, box, _) in enumerate(elements)
        for position, plan in enumerate(plans)
        if satisfies(plan, stream, box, texts[number])
    }
    pairs = list(zip(row.tolist(), query.tolist(), strict=True))
    assert set(pairs) == expected
    assert len(pairs) == len(expected)
    assert pairs == sorted(pairs)
