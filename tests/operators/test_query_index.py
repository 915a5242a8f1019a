"""The index over query boxes finds those that meet a box, by its cells and by its tree."""

import numpy as np
import pytest

from streaming.operators import query_index


@pytest.mark.parametrize("few", [0, 32, 10**9])
@pytest.mark.seeds(200)
def test_the_index_finds_the_boxes_that_meet_whether_by_cells_or_by_a_tree(few, seed):
    rng = np.random.default_rng(seed)

    def boxes(count):
        low = rng.integers(-5, 6, (count, 2)) * rng.choice([1.0, 0.25])
        high = low + rng.integers(0, 4, (count, 2)) * rng.choice([0.0, 1.0])
        return np.where(rng.random((count, 4)) < 0.05, [-np.inf, -np.inf, np.inf, np.inf], np.hstack([low, high]))

    known, asked, name = boxes(30), boxes(40), rng.integers(0, 12, 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(query_index, "FEW_CELLS", few)
        patch.setattr(query_index, "MAX_LINES", int(rng.choice([3, 512])))
        row, query = query_index.QueryIndex(known, name).at_boxes(asked)
    meet = (known[None, :, :2] <= asked[:, None, 2:]).all(2) & (asked[:, None, :2] <= known[None, :, 2:]).all(2)
    expected = {(one, name[other]) for one, other in zip(*np.nonzero(meet), strict=True)}
    assert set(zip(row.tolist(), query.tolist(), strict=True)) == expected
    assert (np.diff(row) >= 0).all()
