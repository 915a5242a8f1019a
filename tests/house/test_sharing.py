"""How the files of a run are divided among its workers."""

from types import SimpleNamespace

import pytest

from tests.house.sharing import Sharing, served

FILES = {
    "tests/a/test_a.py": (3, "def test_0(): pass"),
    "tests/b/test_b.py": (4, "@pytest.mark.browser"),
    "tests/b/test_c.py": (2, "pytestmark = pytest.mark.spark"),
    "tests/d/test_d.py": (1, ""),
    "tests/e/test_e.py": (2, "@pytest.mark.spark"),
    "tests/f/test_f.py": (1, ""),
    "tests/test_g.py": (5, ""),
}
LOOKOUTS = 2
TESTS = [f"{file}::test_{number}" for file, (count, _) in FILES.items() for number in range(count)]


class Worker:
    """Keeps what it is sent, and runs it when the test says so."""

    def __init__(self, number):
        self.gateway, self.shutting_down = SimpleNamespace(id=f"gw{number}"), False
        self.waiting, self.ran = [], []

    def send_runtest_some(self, indices):
        self.waiting += indices

    def shutdown(self):
        self.shutting_down = True


@pytest.fixture
def started(tmp_path):
    """Return a function that returns a scheduler that has given workers their first tests, and the workers."""
    for file, (_, text) in FILES.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)

    def started(count):
        option = SimpleNamespace(loadscopereorder=True, lookouts=LOOKOUTS)
        config = SimpleNamespace(getvalue=lambda _: ["popen"] * count, option=option, rootpath=tmp_path)
        sharing, workers = Sharing(config), [Worker(number) for number in range(count)]
        for worker in reversed(workers):  # none waits for another one to be ready
            sharing.add_node(worker)
            sharing.add_node_collection(worker, TESTS)
        sharing.schedule()
        return sharing, workers

    return started


def finish(sharing, workers):
    """Have workers run all that they are sent, in turns."""
    while any(worker.waiting for worker in workers):
        for worker in workers:
            if worker.waiting:
                worker.ran.append(TESTS[index := worker.waiting.pop(0)])
                sharing.mark_test_complete(worker, index)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_test_runs_once_each_file_on_one_worker_and_few_workers_have_a_lookout(started, tmp_path, count):
    sharing, workers = started(count)
    finish(sharing, workers)
    assert sorted(name for worker in workers for name in worker.ran) == sorted(TESTS)
    assert all(worker.shutting_down for worker in workers)
    files = [{name.split("::")[0] for name in worker.ran} for worker in workers]
    assert sum(map(len, files)) == len(FILES)
    sharers = [worker for worker, own in zip(workers, files, strict=True) if any(served(tmp_path / f) for f in own)]
    assert sharers == workers[: min(count, LOOKOUTS)]


def test_workers_with_a_lookout_begin_with_what_needs_it(started):
    _, workers = started(3)
    begun = [TESTS[worker.waiting[0]].split("::")[0] for worker in workers]
    assert (set(begun[:LOOKOUTS]), begun[LOOKOUTS]) == ({"tests/b/test_b.py", "tests/b/test_c.py"}, "tests/a/test_a.py")


def test_another_worker_starts_a_lookout_when_one_that_had_it_has_crashed(started):
    sharing, workers = started(3)
    crashed = workers[0]
    assert sharing.remove_node(crashed) == TESTS[crashed.waiting[0]]
    finish(sharing, workers[1:])
    assert {name for worker in workers[1:] for name in worker.ran} == set(TESTS)
