"""A run of pytest within a test is a run of its own."""

from pathlib import Path

from tests.house import nested

TESTS = Path(__file__).parents[1]
STRICT = "[pytest]\nfilterwarnings = error\n"


def test_a_run_within_a_worker_that_measures_coverage_is_neither(tmp_path, monkeypatch):
    (tmp_path / "pytest.ini").write_text(STRICT)
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    measured = {"SLIPCOVER_ENABLED": "1", "SLIPCOVER_BRANCH": "1", "SLIPCOVER_COVERAGE_DIR": str(tmp_path)}
    for name, value in measured.items() | {("PYTEST_XDIST_WORKER", "gw0"), ("PYTEST_ADDOPTS", "--no-such-option")}:
        monkeypatch.setenv(name, value)
    without = ("-p", "no:django", "-p", "no:asyncio")
    ended = nested.run_pytest(*without, "-c", tmp_path / "pytest.ini", "--rootdir", tmp_path, tmp_path)
    assert ended.returncode == 0, ended.stdout
    assert not list(tmp_path.glob("coverage-*"))


def test_nothing_else_starts_pytest():
    starts = {path for path in TESTS.rglob("*.py") if '"-m", "pytest"' in path.read_text()}
    assert starts == {Path(nested.__file__), Path(__file__)}
