"""The state folder and the ports that one Lookout needs for itself on a machine."""

import contextlib
import hashlib
import os
import secrets
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from streaming.file_lock import try_lock
from streaming.settings import embedded_redis_file
from streaming.state.files import whole

# After a supervisor was killed, its guardian ends the remaining programs within this time.
PREDECESSOR_S = 15.0
# This file is there while a backup is restored into a state folder.
RESTORING = "restoring"
# Linux names each start of the machine.
BOOT = Path("/proc/sys/kernel/random/boot_id")


class CannotStart(Exception):
    """A resource of the machine that Lookout needs is not available."""


@contextlib.contextmanager
def only_one(home: Path) -> Iterator[int]:
    """Make a state folder private and hold its lock; yield the lock's file descriptor.

    Raises
    ------
    CannotStart
        When another Lookout runs from the folder, the folder is another user's, or a backup was restored in part.
    """
    make_private(home)
    (home / "live.lock").touch(mode=0o600)
    with (home / "live.lock").open("a+") as lock:
        deadline_s = time.monotonic() + PREDECESSOR_S
        while not try_lock(lock):
            lock.seek(0)
            holder = lock.read().strip()
            if holder.isdigit() and psutil.pid_exists(int(holder)):
                raise CannotStart(f"Lookout already runs from {home} (process {holder}); stop it first")
            if time.monotonic() > deadline_s:
                raise CannotStart(f"the end of an earlier Lookout in {home} takes too long; try again")
            time.sleep(0.2)
        if (home / RESTORING).exists():
            raise CannotStart(f"a backup must be restored whole; remove {home}, and restore it again")
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        yield lock.fileno()


def make_private(home: Path) -> None:
    """Make a state folder that only its owner can read, or remove the rights of others from an existing one.

    Raises
    ------
    CannotStart
        When the folder belongs to another user.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        _close(home)
    except PermissionError:
        raise CannotStart(f"LOOKOUT_HOME must be a folder of the user who starts Lookout; got {home}") from None
    for folder, folders, files in os.walk(home):
        for name in (*folders, *files):
            # Files that vanish, or belong to another user, can be skipped: the folder itself is closed already.
            with contextlib.suppress(FileNotFoundError, PermissionError):
                _close(Path(folder, name))


def _close(path: Path) -> None:
    """Remove all rights of group and others from a path, unless it is a symbolic link."""
    mode = path.lstat().st_mode
    if not stat.S_ISLNK(mode) and mode & 0o077:
        path.chmod(stat.S_IMODE(mode) & ~0o077)


def check_address(host: str, port: int) -> None:
    """Check that a web server can listen at an address.

    Raises
    ------
    CannotStart
        When it cannot.
    """
    try:
        with _listener(host, port):
            pass
    except OSError as error:
        why = error.strerror or error
        raise CannotStart(f"cannot listen on {host} port {port} ({why}); set LOOKOUT_PORT to another") from None


def embedded_redis_url(home: Path) -> str:
    """Return the URL of the embedded Redis with its password. It is kept in the state folder while its port is free."""
    kept = embedded_redis_file(home)
    if kept.is_file():
        url = kept.read_text().strip()
        with contextlib.suppress(OSError), _listener("127.0.0.1", urlsplit(url).port):
            return url
    with _listener("127.0.0.1", 0) as free:
        url = f"redis://:{secrets.token_urlsafe(24)}@127.0.0.1:{free.getsockname()[1]}/0"
    with whole(kept) as temporary:
        temporary.touch(mode=0o600)
        temporary.write_text(url + "\n")
    return url


def life_of(url: str) -> str:
    """Return a name for the life of an embedded Redis: another one once the machine has started anew, or if restored.

    Only these take from Redis what it has told: its end after a power cut, and what came after a backup. A restored
    Lookout gets another URL.
    """
    started = BOOT.read_text() if BOOT.exists() else str(int(psutil.boot_time()))
    return hashlib.sha256(f"{started}{url}".encode()).hexdigest()[:12]


def _listener(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens at an address."""
    family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener
