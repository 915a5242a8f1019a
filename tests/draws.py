"""Random examples: how many a run takes, and histories whose every decision is a choice of hypothesis.

A history is made with a `random.Random`. With one of `rngs()`, hypothesis finds the decisions that matter, so that a
history that fails shrinks; with `random.Random(seed)`, a seed makes the same history each time.
"""

import math
import random

from hypothesis import currently_in_test_context, note, settings
from hypothesis import strategies as st

# Hypothesis draws ranges of so many values evenly. It keeps each in two bytes, and an example has 8 KiB:
# a history has at most 4,096 decisions.
STEPS = 128
_STEP = st.integers(0, STEPS - 1)
USUAL_EXAMPLES = 100


def examples(count, **others):
    """Return a decorator that gives a test so many examples for each 100 that other tests have.

    Those have 100 only by default: see the profiles in tests/conftest.py.
    """
    return settings(max_examples=math.ceil(count * settings().max_examples / USUAL_EXAMPLES), **others)


def seen_in(plays, wanted):
    """Return what plays show together, each a set, up to the one after which all that is wanted has been seen."""
    seen = set()
    for shown in plays:
        seen |= shown
        if wanted <= seen:
            break
    return seen


class DrawnRandom(random.Random):
    """A generator whose decisions hypothesis takes; in the simplest ones, less happens.

    The first seven bits of a number are a choice of hypothesis, so chances are those of any other generator. The bits
    after these hardly matter: they come from a generator with a fixed seed.

    Parameters
    ----------
    draw : callable
        What `hypothesis.strategies.composite` gives.
    """

    def __init__(self, draw):
        super().__init__(0)
        self._draw, self._rest, self._drawn = draw, random.Random(0), 0

    def getrandbits(self, k):
        # Hypothesis varies an example by repeating what it drew under the same label. Of a history, that would be the
        # same one but for a single decision, most of the time.
        self._drawn += 1
        return self._draw(_STEP, self._drawn) << k >> 7 | self._rest.getrandbits(max(0, k - 7))

    def random(self):
        # From the simplest choice, the greatest number: `rng.random() < 0.1` is false then.
        return 1 - (self.getrandbits(53) + 1) / 2**53

    def _randbelow(self, n):
        # As the class above does it, about one in three choices would be drawn again.
        return self.getrandbits(53) * n >> 53

    def sample(self, population, k):
        # As the class above does it, what has been chosen already would be drawn again: without end, where all choices
        # are the simplest ones.
        last, moved = len(population) - 1, {}
        for place in range(k):
            at = place + self._randbelow(last - place + 1)
            moved[place], moved[at] = moved.get(at, at), moved.get(place, place)
        return [population[moved[place]] for place in range(k)]


@st.composite
def rngs(draw):
    """Return generators for histories that shrink."""
    return DrawnRandom(draw)


def times(rng, most, least=0):
    """Yield as often as `rng.randint(least, most)` says; each round can be left out with all that is decided in it."""
    if not isinstance(rng, DrawnRandom):
        yield from range(rng.randint(least, most))
        return
    for number in range(most):
        if number >= least and rng.random() >= 1 - 1 / (most - number + 1):
            return
        yield number


def happening(rng, events, most):
    """Yield up to `most` names of events, each as often as its weight says, the simplest first.

    Parameters
    ----------
    events : dict of str to float
        The weight of each event.
    """
    names, weights = list(events), list(events.values())
    if not isinstance(rng, DrawnRandom):
        yield from rng.choices(names, weights, k=rng.randint(0, most))
        return
    for _ in times(rng, most):
        (name,) = rng.choices(names[::-1], weights[::-1])  # so that the simplest choice is the first event
        if currently_in_test_context():
            note(name)
        yield name


def play(world, events, rng, most):
    """Have up to `most` events happen to a world: `events` has the names of its methods, with their weights."""
    for name in happening(rng, events, most):
        getattr(world, name)()
