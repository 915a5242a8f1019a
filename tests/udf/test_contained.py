"""Filters of other packages are used, and harm nobody where they are wrong."""

import pytest
import shapely

from streaming.errors import LookoutError
from streaming.spaces import EARTH, Dimension, Space
from streaming.udf import check_filter, evaluate_element, evaluate_pair, filter_names, filter_of
from tests.udf.acme import WRONG
from tests.udf.batches import batch

BATCH = batch(shapely.points([(1, 2)] * 3), keys=["ab", "b", "a"])


def test_a_filter_of_another_package_judges(acme):
    assert "good" in filter_names()
    assert evaluate_element("good", BATCH, "a").passes.tolist() == [True, False, True]
    assert evaluate_pair("good", BATCH, BATCH, "b").passes.tolist() == [False, True, False]


def test_a_filter_is_made_once(acme):
    assert filter_of("good") is filter_of("good")


def test_a_built_in_filter_is_not_replaced(acme):
    assert evaluate_element("key_equals", BATCH, "a").error is None


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_filter_lets_nothing_pass_and_says_why(acme, name):
    for judged in (evaluate_element(name, BATCH, ""), evaluate_pair(name, BATCH, BATCH, "")):
        assert judged.passes.tolist() == [False] * 3
        assert judged.error.startswith(f"the filter {name} failed: ")
        assert WRONG[name] in judged.error


@pytest.mark.parametrize("pairs", [False, True])
def test_a_filter_is_tried_on_no_rows(acme, pairs):
    check_filter("good", "a", EARTH, pairs)
    check_filter("geojson_spatial", "", Space("prices", (Dimension("price", "EUR", 0.0, 1e6),)), pairs)
    for name in ("raises", "unknown", "nothing"):
        with pytest.raises(LookoutError, match=f"the filter {name} failed"):
            check_filter(name, "", EARTH, pairs)


def test_what_an_argument_means_depends_on_what_is_judged():
    check_filter("geojson_spatial", "name:x", EARTH, pairs=True)
    with pytest.raises(LookoutError, match="GeoJSON geometry"):
        check_filter("geojson_spatial", "name:x", EARTH)
