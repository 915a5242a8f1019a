"""A pytest plugin for tests that make much at random from a seed, which cannot usefully shrink: a table of seeds.

``@pytest.mark.seeds(400)`` gives the argument ``seed`` of a test the numbers below 400, of which a run takes a quarter.
Which one, the number of commits says: a commit is always tested alike, and commits take turns. ``also`` are seeds that
every run takes. ``--seeds=2`` or ``LOOKOUT_SEEDS=2`` chooses a quarter, ``--seeds=all`` takes all and as many new ones,
and ``--seed=17`` takes one.

The number of the part is also what the examples of hypothesis are made from.

The seeds of a test are one item, since an item would cost more than most of the tests do for a seed. Where each seed
needs fixtures of its own, ``@pytest.mark.separate_seeds(2, 5, 9, 21)`` makes an item of each seed that a run takes: a
quarter of those that it names, and at least one.
"""

import inspect
import os
import random
import subprocess

import pytest
from hypothesis import core

PARTS = 4
ALL = "all"


def pytest_addoption(parser):
    """Add the options that choose seeds."""
    group = parser.getgroup("seeds")
    parts = f"the part of the seeds that a run takes, 0 to {PARTS - 1}, or `{ALL}` and as many new ones"
    group.addoption("--seeds", default=os.environ.get("LOOKOUT_SEEDS"), metavar="PART", help=parts)
    group.addoption("--seed", type=int, help="the one seed that a run takes")


def pytest_configure(config):
    """Find out which seeds the run takes; xdist tells its workers."""
    config.addinivalue_line("markers", "seeds(count, also=()): takes a part of so many seeds (tests/house/seeds.py)")
    config.addinivalue_line("markers", "separate_seeds(*seeds): takes a part of these seeds, each as an item")
    known = [ALL, *map(str, range(PARTS))]
    if config.option.seeds is None:
        config.option.seeds = str(commits(config.rootpath) % PARTS)
    elif config.option.seeds not in known:
        raise pytest.UsageError(f"--seeds must be one of {', '.join(known)}; got {config.option.seeds!r}")
    if config.option.seeds != ALL and core.global_force_seed is None:
        core.global_force_seed = int(config.option.seeds)


def pytest_report_header(config):
    """Say which seeds the run takes, and how to take them again."""
    if config.option.seed is not None:
        return f"seeds: {config.option.seed} alone"
    if config.option.seeds == ALL:
        return f"seeds: all, and as many new ones (--seeds={ALL})"
    return f"seeds: part {config.option.seeds} of 0 to {PARTS - 1} (again: --seeds={config.option.seeds})"


def commits(root) -> int:
    """Return how many commits a checkout has; 0 where there is none, or no git."""
    try:
        told = subprocess.run(
            ["git", "rev-list", "--count", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(told.stdout)


def taken(part: str, count: int, also=()) -> list[int]:
    """Return the seeds that a run takes.

    Parameters
    ----------
    part : str
        The number of a part, or `ALL`.
    count : int
        How many seeds the table has.
    also : sequence of int
        Seeds that every part has.
    """
    if part != ALL:
        return [*also, *range(int(part), count, PARTS)]
    return [*also, *range(count), *random.SystemRandom().sample(range(count, 2**32), count)]


def separate(part: str, seeds) -> list[int]:
    """Return which of the named seeds of a test a run takes."""
    return list(seeds) if part == ALL else list(seeds)[int(part) % len(seeds) :: PARTS]


def pytest_generate_tests(metafunc):
    """Make an item of each seed that has fixtures of its own."""
    if mark := metafunc.definition.get_closest_marker("separate_seeds"):
        option = metafunc.config.option
        metafunc.parametrize("seed", separate(option.seeds, mark.args) if option.seed is None else [option.seed])


@pytest.fixture
def seed():
    """Stand for the seeds of a test, which `pytest_pyfunc_call` passes one by one."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Call a test once for each seed; one that fails is named."""
    mark = pyfuncitem.get_closest_marker("seeds")
    if mark is None:
        return None
    option, test = pyfuncitem.config.option, pyfuncitem.obj
    others = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters if name != "seed"}
    for seed in taken(option.seeds, *mark.args, **mark.kwargs) if option.seed is None else [option.seed]:
        try:
            test(**others, seed=seed)
        except Exception as error:
            error.add_note(f"with the seed {seed}; again: pytest --seed={seed} '{pyfuncitem.nodeid}'")
            raise
    return True
