"""What one Lookout owns on a machine."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from streaming.settings import embedded_redis_file
from webapp.live.home import CannotStart, check_address, embedded_redis_url, make_private, only_one

ROOT = Path(__file__).parents[2]


@pytest.fixture
def taken_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_second_lookout_in_the_same_folder_is_refused_by_name_of_the_first(tmp_path):
    second = (
        "import sys; from pathlib import Path; from webapp.live.home import only_one\n"
        "with only_one(Path(sys.argv[1])): pass"
    )
    with only_one(tmp_path):
        refused = subprocess.run([sys.executable, "-c", second, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert f"Lookout already runs from {tmp_path} (process {os.getpid()}); stop it first" in refused.stderr
    with only_one(tmp_path):
        pass


def test_a_taken_port_is_refused_with_the_setting_to_change(taken_port):
    with pytest.raises(CannotStart, match=f"cannot listen on 127.0.0.1 port {taken_port} .*LOOKOUT_PORT"):
        check_address("127.0.0.1", taken_port)


def test_a_free_port_is_accepted(taken_port):
    check_address("127.0.0.1", 0)


def test_the_address_of_the_embedded_redis_is_kept_and_private(tmp_path):
    url = embedded_redis_url(tmp_path)
    assert embedded_redis_url(tmp_path) == url
    assert urlsplit(url).password
    assert stat.S_IMODE(embedded_redis_file(tmp_path).stat().st_mode) == 0o600


def test_the_embedded_redis_moves_when_another_program_took_its_port(tmp_path, taken_port):
    kept = embedded_redis_file(tmp_path)
    kept.parent.mkdir()
    kept.write_text(f"redis://:secret@127.0.0.1:{taken_port}/0")
    assert urlsplit(embedded_redis_url(tmp_path)).port != taken_port


def open_to_others(folder):
    """Return what group or others may reach in a folder, itself among it."""
    paths = (folder, *folder.rglob("*"))
    return [path for path in paths if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) & 0o077]


def test_a_state_folder_that_was_open_to_others_is_closed_at_a_start(tmp_path):
    home, outside = tmp_path / "home", tmp_path / "outside"
    (home / "log").mkdir(parents=True)
    for path in (home / "db.sqlite3", home / "log" / "web.log", outside):
        path.touch()
        path.chmod(0o664)
    (home / "java").touch(0o755)
    (home / "link").symlink_to(outside)
    home.chmod(0o755)
    with only_one(home):
        assert open_to_others(home) == []
    assert stat.S_IMODE((home / "java").stat().st_mode) == 0o700, "what could be run still can"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o664, "what lies elsewhere is left alone"


def test_a_new_state_folder_is_private_whatever_the_umask(tmp_path):
    make = (
        "from pathlib import Path; import sys; from webapp.machine.secret import kept_secret; "
        "kept_secret(Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", make, tmp_path / "home" / "secret_key"]
    subprocess.run(command, cwd=ROOT, check=True, umask=0)
    make_private(tmp_path / "made")
    assert open_to_others(tmp_path / "home") == open_to_others(tmp_path / "made") == []


@pytest.mark.long
def test_a_command_writes_files_that_others_cannot_read(tmp_path):
    environment = os.environ | {"LOOKOUT_HOME": str(tmp_path / "home"), "DATABASE_URL": ""}
    command = [sys.executable, "manage.py", "migrate", "--noinput", "-v0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, umask=0o022)
    assert (tmp_path / "home" / "db.sqlite3").is_file()
    assert open_to_others(tmp_path / "home") == []
