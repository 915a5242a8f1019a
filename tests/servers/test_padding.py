"""Joins with layers in pages equal brute force with each strategy of padding, wherever regions are cut."""

import dataclasses
import logging
import math
from contextlib import ExitStack
from unittest.mock import patch

import numpy as np
import pytest
import shapely
from hypothesis import given

from streaming.elements import bounds_of
from streaming.layers import parts, store
from streaming.layers.features import feature_table
from streaming.layers.pages import Pages
from streaming.operators import layer as paged
from streaming.operators.layer import LayerVersion
from streaming.operators.padding import DYNAMIC, FETCH, STATIC, LayerReach, Padding
from streaming.plans import parse_plan
from streaming.spaces import EARTH
from tests.draws import examples, rngs
from tests.servers.test_joins import play, random_plan

PADDINGS = (Padding(FETCH), Padding(STATIC, 20_000.0), Padding(DYNAMIC))
# A third of the way round the world: farther than any region of the histories is wide.
FAR_M = 13_000_000.0


def far_plan(rng):
    """Return a plan that may reach across whole regions."""
    plan = random_plan(rng)
    if plan.partners.predicate != "dwithin" or rng.random() < 0.5:
        return plan
    return dataclasses.replace(plan, partners=dataclasses.replace(plan.partners, distance=FAR_M))


def play_in_pages(rng, padding):
    """Play a history of joins with pages of one feature or two, and versions that are compared in every way."""
    chosen = {
        (parts, "ROWS_PER_GROUP"): rng.choice([1, 2]),
        (store, "MAX_PARTS"): rng.choice([2, 16]),
        (paged, "FETCHED"): rng.choice([1, 2]),
        (paged, "COMPARED_AT_ONCE"): 2,
        (paged, "MOST_DIFFERING"): rng.choice([1, 100]),
    }
    with ExitStack() as patches:
        for (module, name), value in chosen.items():
            patches.enter_context(patch.object(module, name, value))
        return play(rng, edited=rng.random() < 0.5, padding=padding, random_plan=far_plan)


@pytest.mark.long
@pytest.mark.parametrize("padding", PADDINGS, ids=lambda padding: padding.strategy)
@examples(7)
@given(rngs())
def test_answers_equal_the_oracle_with_each_padding_through_splits_merges_and_edits(padding, rng):
    play_in_pages(rng, padding)


def boxes_at(places):
    """Return unit squares with their low corners at places."""
    return [shapely.box(x, y, x + 1, y + 1) for x, y in places]


def layer_of(*parts, removed=(), before=None):
    """Return a layer whose parts have the given features, by name of the part: a page for each feature."""
    made = []
    for name, features in parts:
        table = feature_table("zones", list(features), boxes_at(features.values()), [{}] * len(features))
        tables = [table.slice(row, 1) for row in range(len(features))]
        boxes, order = bounds_of(table["bounds"]), np.argsort(hashes := table["key_hash"].to_numpy())
        made.append(
            Pages(
                name,
                boxes,
                hashes[order],
                order.astype(np.int32),
                Pages.of("", table, EARTH).digest[order],
                tables.__getitem__,
            )
        )
    gone = feature_table("zones", list(removed), boxes_at([(0, 0)] * len(removed)), [{}] * len(removed))
    return LayerVersion(made, np.sort(gone["key_hash"].to_numpy()), EARTH, before)


def keys_of(layer):
    return sorted(key for features in layer.pages() for key in features.table["key"].to_pylist())


def at(*places):
    """Return the boxes of points."""
    return np.array([[x, y, -math.inf, x, y, math.inf] for x, y in places])


def join(**partners):
    return parse_plan({"stream": "ships", "kind": "join", "join": {"layer": "zones", **partners}})


ROW = {str(number): (10 * number, 0) for number in range(8)}


def test_only_pages_that_elements_come_near_are_read():
    layer = layer_of(("a", ROW))
    for comparison, rows in layer.comparisons(join(), at((0.5, 0.5), (30.5, 0.5), (77, 7))):
        assert rows.tolist() == [0, 1] and len(comparison.features) == 2
    assert layer.in_memory == 2 and list(layer.comparisons(join(), at((-20, 0)))) == [] and layer.in_memory == 2
    assert len(list(layer.comparisons(join(predicate="disjoint"), at((0, 0))))) == len(ROW)


def test_pages_stay_in_memory_while_a_region_keeps_them_and_otherwise_only_the_last_ones(monkeypatch):
    monkeypatch.setattr(paged, "FETCHED", 2)
    layer = layer_of(("a", ROW))
    keys_of(layer)
    assert layer.in_memory == 2
    layer.keep(0, 1, np.arange(8) < 3)
    layer.keep(1, 1, np.arange(8) == 4)
    read = layer.read_bytes
    for _ in range(2):
        keys_of(layer)
        assert layer.in_memory == 4 + 2
    assert layer.read_bytes > read
    layer.keep(0, 2, np.arange(8) < 3)
    assert layer.in_memory == 4 + 2, "the other region may not have run yet"
    layer.keep(0, 3, np.arange(8) < 3)
    assert layer.in_memory == 3 + 2


def test_an_edited_layer_uses_the_pages_again_that_are_in_memory_without_what_the_edit_replaced():
    before = layer_of(("a", ROW))
    keys_of(before)
    after = layer_of(("a", ROW), ("b", {"3": (5, 5)}), removed=["4"], before=before)
    assert keys_of(after) == sorted(ROW.keys() - {"4"})
    assert after.page(0) is before.page(0) and after.page(3) is not before.page(3) and after.read_bytes > 0
    told = before.differing(after)
    assert sorted(told.table["key"].to_pylist()) == ["3", "3", "4"]


@pytest.mark.parametrize("at_once", [1, 3, 1 << 18])
def test_versions_without_a_common_part_differ_in_what_their_features_say(monkeypatch, at_once):
    monkeypatch.setattr(paged, "COMPARED_AT_ONCE", at_once)
    before = layer_of(("a", ROW), ("b", {"3": (5, 5)}), removed=["4"])
    after = layer_of(("c", {"0": (0, 0), "1": (1, 1), "3": (5, 5), "9": (9, 9)}))
    assert sorted(before.differing(after).table["key"].to_pylist()) == ["1", "1", "2", "5", "6", "7", "9"]
    same = layer_of(("d", {key: place for key, place in ROW.items() if key not in "34"} | {"3": (5, 5)}))
    assert len(before.differing(same)) == 0
    monkeypatch.setattr(paged, "MOST_DIFFERING", 5)
    assert before.differing(after) is None and before.differing(LayerVersion.none(EARTH)) is None


def test_a_region_keeps_the_pages_that_its_padded_cell_meets(caplog):
    layer, cell = layer_of(("a", ROW)), np.array([-1.0, -1.0, -math.inf, 9.5, 9.0, math.inf])
    far = LayerReach("zones", (), 100_000.0), LayerReach("zones", (), 2_000_000.0)
    counts = {
        Padding(FETCH): 0,
        Padding(STATIC, 0.0): 1,
        Padding(STATIC, 100_000.0): 2,
        Padding(DYNAMIC): 3,
    }
    with caplog.at_level(logging.WARNING):
        assert {padding: padding.kept(layer, cell, far).sum() for padding in counts} == counts
    assert "LOOKOUT_PADDING_SIZE=100000; got a distance of 2e+06" in caplog.text
    assert Padding(DYNAMIC).kept(layer, cell, ()).sum() == 0
    assert Padding(DYNAMIC).kept(layer, cell, [LayerReach("zones", (), math.inf)]).all()


def test_a_region_keeps_pages_beyond_the_antimeridian():
    layer, cell = layer_of(("a", {"e": (178.9, 0), "w": (-179.9, 0)})), at((170.0, 0), (180.0, 9.0))
    cell = np.r_[cell[0, :3], cell[1, 3:]]
    assert Padding(DYNAMIC).kept(layer, cell, [LayerReach("zones", (), 20_000.0)]).all()
