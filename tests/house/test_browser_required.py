"""The plugin with which the continuous integration insists on browser tests."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INI = "[pytest]\nmarkers =\n    browser: x\n"
SKIPPED = "import pytest\n@pytest.mark.browser\ndef test_map():\n    pytest.skip('no Chromium here')\n"
PASSED = "import pytest\n@pytest.mark.browser\ndef test_map():\n    pass\n"
OTHER = "def test_other():\n    pass\n"


def run_pytest(folder, test, *options):
    """Run pytest on one test file in a process of its own."""
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text(INI)
    command = [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", *options]
    command += ["--rootdir", folder, "-c", folder / "pytest.ini", folder]
    # What this run was told to add is not meant for that one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(("test", "code"), [(SKIPPED, 1), (PASSED, 0), (OTHER, 4)])
def test_only_browser_tests_that_ran_and_passed_satisfy_the_plugin(tmp_path, test, code):
    run = run_pytest(tmp_path, test, "-p", "tests.house.browser_required")
    assert run.returncode == code, run.stdout + run.stderr


def test_without_the_plugin_a_browser_test_may_be_skipped(tmp_path):
    assert run_pytest(tmp_path, SKIPPED).returncode == 0
