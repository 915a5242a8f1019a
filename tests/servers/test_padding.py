"""Joins with layers in pages equal brute force with each strategy of padding, wherever regions are cut."""

import dataclasses
import random
from contextlib import ExitStack
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.layers import parts, store
from streaming.operators import layer as paged
from streaming.operators.padding import DYNAMIC, FETCH, STATIC, Padding
from tests.servers.test_joins import play_seed, random_plan

PADDINGS = (Padding(FETCH), Padding(STATIC, 20_000.0), Padding(DYNAMIC))
# A third of the way round the world: farther than any region of the histories is wide.
FAR_M = 13_000_000.0


def far_plan(rng):
    """Return a plan that may reach across whole regions."""
    plan = random_plan(rng)
    if plan.partners.predicate != "dwithin" or rng.random() < 0.5:
        return plan
    return dataclasses.replace(plan, partners=dataclasses.replace(plan.partners, distance=FAR_M))


def play_in_pages(seed, padding):
    """Play a history of joins with pages of one feature or two, and versions that are compared in every way."""
    rng = random.Random(seed)
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
        return play_seed(seed, edited=rng.random() < 0.5, padding=padding, random_plan=far_plan)


@pytest.mark.parametrize("padding", PADDINGS, ids=lambda padding: padding.strategy)
@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_answers_equal_the_oracle_with_each_padding_through_splits_merges_and_edits(padding, seed):
    play_in_pages(seed, padding)
