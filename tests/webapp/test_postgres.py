"""What uses the database works on PostgreSQL as well: a part of these tests runs on a server of its own."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from bench.live import PATIENCE_S
from bench.ports import free_port
from tests.house.nested import run_pytest

MODULES = (
    *("test_query_list", "test_settling", "test_recording", "test_incidents", "test_outbox", "test_sending"),
    *("test_audit", "test_groups_become_teams", "test_access"),
)
# Models and migrations, search in any case, what several save at the same time, warnings, recorded events,
# incidents, alarms, the audit log, groups that become teams, rights.
CHOSEN = (
    "search or settled or silence or refuses or recorded_once or two_workers or transaction_fails or warning"
    " or by_hand or brute_force or statements or whoever or older_than or forgotten or admin_deletes"
    " or claim or limit or delivery or recorded_when or deletion_brings or neither_a_change or becomes_a_team"
    " or what_is_decided"
)
# A thread of a test may leave its connection open: psycopg warns of that, and SQLite does not.
QUIET = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning", "-W", "ignore::ResourceWarning")
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
OPTIONS = "-c fsync=off -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=60"


@pytest.fixture(scope="module")
def database_url():
    """Run a server on loopback, with a folder of its own; yield the URL of a database."""
    if not PROGRAMS:
        pytest.skip("no server of PostgreSQL is installed: apt-get install postgresql")
    # The server refuses to run as root.
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    folder, port = Path(tempfile.mkdtemp(prefix="lookout-postgres-")), free_port()
    if user:
        shutil.chown(folder, "postgres")
    control = [*user, PROGRAMS[-1] / "pg_ctl", "-D", folder / "data", "-w"]

    def run(*command):
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)

    try:
        run(*control, "initdb", "-s", "-o", "-A trust -U lookout --no-sync")
        run(*control, "start", "-l", folder / "log", "-o", f"{OPTIONS} -c port={port}")
        yield f"postgres://lookout@127.0.0.1:{port}/lookout"
        run(*control, "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)


@pytest.mark.long
def test_a_part_of_the_tests_of_the_web_application_passes_on_postgresql(database_url):
    folder = Path(__file__).parent
    files = [folder / f"{name}.py" for name in MODULES]
    ended = run_pytest("-q", "-n", "0", *QUIET, "-k", CHOSEN, *files, DATABASE_URL=database_url)
    assert ended.returncode == 0, ended.stdout[-6_000:]
