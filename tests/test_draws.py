"""Histories of drawn decisions have the chances of other generators, and shrink to what matters."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import find, given, settings

from tests.draws import happening, play, rngs, times

EVENTS = {"put": 6, "take": 2, "look": 1}


class Shelf:
    """A set beside one that is wrong: what is put after another thing was taken cannot be taken any more."""

    def __init__(self, rng):
        self.rng, self.told = rng, []
        self.truth, self.found, self.taken, self.stuck = set(), set(), False, None

    def put(self):
        key, size = self.rng.choice("abcd"), self.rng.randint(1, 9)
        many = self.rng.random() < 0.3
        self.told.append(("put", key, size, many))
        self.truth.add(key)
        self.found.add(key)
        self.stuck = key if self.taken else None

    def take(self):
        key = self.rng.choice("abcd")
        self.told.append(("take", key))
        self.truth.discard(key)
        if not self.taken or key != self.stuck:
            self.found.discard(key)
        self.taken = True

    def look(self):
        self.told.append(("look",))


def wrong(rng, histories):
    """Play a history up to the first difference; remember it, and tell whether there is one."""
    shelf = Shelf(rng)
    for _ in times(rng, 4):
        play(shelf, EVENTS, rng, 8)
        if shelf.truth != shelf.found:
            histories.append(shelf.told)
            return True
    return False


@pytest.mark.long
def test_a_history_that_fails_shrinks_to_the_events_and_details_that_matter():
    histories = []
    with_repeats = settings(database=None, derandomize=True, max_examples=500)
    find(rngs(), lambda rng: wrong(rng, histories), settings=with_repeats)
    assert len(histories[0]) > 5
    assert histories[-1] == [("take", "a"), ("put", "a", 1, False), ("take", "a")]


def test_chances_are_those_of_any_generator():
    seen, sampled, drawn, rounds = Counter(), Counter(), [], Counter()

    @settings(max_examples=9, database=None, derandomize=True)
    @given(rngs())
    def draw(rng):
        if not seen and not rounds:  # the first example is the simplest one, in which nothing happens
            rounds[len(list(times(rng, 4)))] += 0
            seen["none"] += 0
            return
        for _ in range(100):
            seen.update(happening(rng, EVENTS, 4))
            rounds[len(list(times(rng, 4, 2)))] += 1
            drawn.extend([rng.random(), rng.uniform(0, 1), rng.randrange(10**6) / 10**6])
            seen[rng.choice("xyz")] += 1
            chosen = rng.sample(range(5), 3)
            assert len(set(chosen)) == 3
            sampled.update(chosen)

    draw()
    many = sum(seen[name] for name in EVENTS)
    assert abs(seen["put"] / many - 6 / 9) < 0.05 and abs(seen["look"] / many - 1 / 9) < 0.04
    assert all(abs(rounds[count] / 800 - 1 / 3) < 0.08 for count in (2, 3, 4))
    assert all(abs(seen[name] / 800 - 1 / 3) < 0.08 for name in "xyz")
    assert all(abs(sampled[number] / 800 - 3 / 5) < 0.08 for number in range(5))
    assert np.abs(np.quantile(drawn, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.04


def test_a_seed_makes_the_history_that_it_always_made():
    one, other = random.Random(5), random.Random(5)
    expected = one.choices(list(EVENTS), list(EVENTS.values()), k=one.randint(0, 20))
    assert list(happening(other, EVENTS, 20)) == expected
