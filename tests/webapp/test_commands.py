"""Commands in a folder that was never started say what comes first."""

import os
import subprocess
import sys

import pytest

COMMANDS = {
    "import_layer": ["tests/webapp/conftest.py"],
    "create_login_link": [],
    "seed_demo": [],
}


def ran(home, *command):
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"LOOKOUT_HOME": str(home), "LOOKOUT_REDIS_URL": "redis://127.0.0.1:1/0"}
    return subprocess.run([sys.executable, "manage.py", *command], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(("command", "arguments"), COMMANDS.items(), ids=COMMANDS)
def test_in_a_folder_that_was_never_started_a_command_says_what_comes_first(tmp_path, command, arguments):
    told = ran(tmp_path / "home", command, *arguments)
    assert told.returncode == 1
    assert "Traceback" not in told.stderr
    assert f"the state folder {tmp_path / 'home'} must be ready" in told.stderr
    assert "start Lookout there once (make live), or run `manage.py migrate` first" in told.stderr


def test_a_database_that_cannot_be_opened_is_told(tmp_path):
    (tmp_path / "home" / "db.sqlite3").mkdir(parents=True)
    told = ran(tmp_path / "home", "create_login_link")
    assert (told.returncode, "Traceback" in told.stderr) == (1, False)
    assert "the database must be there; start Lookout there once" in told.stderr
