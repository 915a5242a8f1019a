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
from webapp.live.home import CannotStart, check_address, embedded_redis_url, only_one

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
