"""The plugin with which the continuous integration insists on browser tests."""

import pytest

from tests.house.nested import run_pytest

INI = "[pytest]\nmarkers =\n    browser: x\n"
SKIPPED = "import pytest\n@pytest.mark.browser\ndef test_map():\n    pytest.skip('no Chromium here')\n"
PASSED = "import pytest\n@pytest.mark.browser\ndef test_map():\n    pass\n"
OTHER = "def test_other():\n    pass\n"


def run(folder, test, *options):
    """Run pytest on one test file in a process of its own."""
    (folder / "test_it.py").write_text(test)
    (folder / "pytest.ini").write_text(INI)
    return run_pytest("-p", "no:django", *options, "--rootdir", folder, "-c", folder / "pytest.ini", folder)


@pytest.mark.parametrize(("test", "code"), [(SKIPPED, 1), (PASSED, 0), (OTHER, 4)])
def test_only_browser_tests_that_ran_and_passed_satisfy_the_plugin(tmp_path, test, code):
    ended = run(tmp_path, test, "-p", "tests.house.browser_required")
    assert ended.returncode == code, ended.stdout


def test_without_the_plugin_a_browser_test_may_be_skipped(tmp_path):
    assert run(tmp_path, SKIPPED).returncode == 0
