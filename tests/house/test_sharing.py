"""How the files of a run are divided among its workers."""

from types import SimpleNamespace

import pytest

from tests.house.sharing import CLUSTER, LOOKOUTS, SHARED, Sharing, ordered

FILES = {
    "tests/webapp/test_a.py": 3,
    "tests/browser/test_b.py": 4,
    "tests/live/test_c.py": 2,
    CLUSTER: 1,
    "tests/servers/test_d.py": 1,
    "tests/browser/test_e.py": 2,
    "tests/plans/test_f.py": 1,
    "tests/test_g.py": 5,
}
TESTS = [f"{file}::test_{number}" for file, count in FILES.items() for number in range(count)]


class Worker:
    """Keeps what it is sent, and runs it when the test says so."""

    def __init__(self, number):
        self.gateway, self.shutting_down = SimpleNamespace(id=f"gw{number}"), False
        self.waiting, self.ran = [], []

    def send_runtest_some(self, indices):
        self.waiting += indices

    def shutdown(self):
        self.shutting_down = True


def started(count):
    """Return a scheduler that has given workers their first tests, and the workers."""
    config = SimpleNamespace(getvalue=lambda _: ["popen"] * count, option=SimpleNamespace(loadscopereorder=True))
    sharing, workers = Sharing(config), [Worker(number) for number in range(count)]
    for worker in workers:
        sharing.add_node(worker)
        sharing.add_node_collection(worker, TESTS)
    sharing.schedule()
    return sharing, workers


def finish(sharing, workers):
    """Have workers run all that they are sent, in turns."""
    while any(worker.waiting for worker in workers):
        for worker in workers:
            if worker.waiting:
                worker.ran.append(TESTS[index := worker.waiting.pop(0)])
                sharing.mark_test_complete(worker, index)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_test_runs_once_each_file_on_one_worker_and_few_workers_have_a_lookout(count):
    sharing, workers = started(count)
    finish(sharing, workers)
    assert sorted(name for worker in workers for name in worker.ran) == sorted(TESTS)
    assert all(worker.shutting_down for worker in workers)
    files = [{name.split("::")[0] for name in worker.ran} for worker in workers]
    assert sum(map(len, files)) == len(FILES)
    sharers = [worker for worker, own in zip(workers, files, strict=True) if any(f.startswith(SHARED) for f in own)]
    assert sharers == workers[: min(count, LOOKOUTS)]


def test_another_worker_starts_a_lookout_when_one_that_had_it_has_crashed():
    sharing, workers = started(3)
    crashed = workers[0]
    assert sharing.remove_node(crashed) == TESTS[crashed.waiting[0]]
    finish(sharing, workers[1:])
    assert {name for worker in workers[1:] for name in worker.ran} == set(TESTS)


def test_what_shares_a_lookout_begins_first_and_clusters_before():
    files = ordered(FILES)
    assert files[:4] == [CLUSTER, "tests/live/test_c.py", "tests/browser/test_b.py", "tests/browser/test_e.py"]
    assert files[4] == "tests/servers/test_d.py"
