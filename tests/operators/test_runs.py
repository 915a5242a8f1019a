"""Hashes are ordered as by a stable sort, whatever half of them is equal."""

import numpy as np
import pytest

from streaming.operators.runs import order_of_hashes

HIGH, LOW = 1 << 32, 5


@pytest.mark.parametrize("count", [0, 1, 2, 5_000])
@pytest.mark.parametrize("scale", [1, HIGH, HIGH + LOW], ids=["lower half", "upper half", "both"])
def test_the_order_of_hashes_is_that_of_a_stable_sort(count, scale):
    few = np.random.default_rng(1).integers(-30, 30, count) * scale
    wide = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, count)
    for values in (few, wide, np.r_[wide, few, wide]):
        assert order_of_hashes(values).tolist() == np.argsort(values, kind="stable").tolist()
