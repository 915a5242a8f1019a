"""Tests of seeds: what a run takes, and what it says of a seed that fails."""

import os
import re
from pathlib import Path

import pytest

from tests.house.nested import run_pytest
from tests.house.seeds import ALL, PARTS, commits, separate, taken

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest

@pytest.mark.parametrize("other", ["x"])
@pytest.mark.seeds(8, also=[99])
def test_a_seed(tmp_path, other, seed):
    print("took", seed)
    assert other == "x" and tmp_path and seed != 6

@pytest.mark.separate_seeds(31, 32, 33, 34, 35)
def test_each(tmp_path, seed):
    print("alone", seed, tmp_path.name)
"""


def test_the_parts_are_the_whole_table_without_overlaps_and_with_the_seeds_that_each_has():
    parts = [taken(str(part), 10, [77]) for part in range(PARTS)]
    assert all(part[0] == 77 for part in parts)
    assert sorted(seed for part in parts for seed in part[1:]) == list(range(10))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8])
def test_parts_of_separate_seeds_are_all_of_them_and_none_is_empty(count):
    parts = [separate(str(part), range(count)) for part in range(PARTS)]
    assert all(parts)
    assert {seed for part in parts for seed in part} == set(range(count)) == set(separate(ALL, range(count)))


def test_all_are_the_table_and_as_many_new_seeds_each_time():
    one, other = (taken(ALL, 10) for _ in range(2))
    assert one[:10] == other[:10] == list(range(10))
    assert len(one) == len(set(one)) == 20 and one[10:] != other[10:]


def test_a_folder_without_commits_has_none(tmp_path):
    assert commits(tmp_path) == 0
    assert commits(tmp_path / "absent") == 0


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a few tests of seeds with options, and returns what that prints."""
    (tmp_path / "test_few.py").write_text(TESTS)

    def run(*options, **environment):
        command = ["-s", "--noconftest", "-p", "tests.house.seeds", "-c", os.devnull]
        command += ["-p", "no:hypothesispytest", "--rootdir", tmp_path, *options, tmp_path]
        only = {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return run_pytest(*command, folder=tmp_path, **only | environment).stdout

    return run


def test_a_run_takes_a_part_and_names_it_with_the_seed_that_fails(run):
    told = run("--seeds=2")
    assert "seeds: part 2 of 0 to 3 (again: --seeds=2)" in told
    assert re.findall(r"took (\d+)", told) == ["99", "2", "6"]
    assert re.findall(r"alone (\d+)", told) == ["33"]
    assert "with the seed 6; again: pytest --seed=6 'test_few.py::test_a_seed[x]'" in told and "1 failed" in told


def test_a_run_takes_the_part_that_the_environment_names_and_otherwise_the_first(run):
    assert "took 1\ntook 5\n" in run(LOOKOUT_SEEDS="1")
    assert "took 0\ntook 4\n" in run()  # of a folder without commits


def test_a_run_takes_one_seed(run):
    told = run("--seed=4")
    assert re.findall(r"(?:took|alone) (\d+)", told) == ["4", "4"] and "2 passed" in told
