"""A database with all migrations, and the page's collected files, made once for all servers that tests start.

They stay in ``build/prepared``, for the next run too, until a migration or a source of the page changes.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from webapp.pages.static import fingerprint

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "prepared"


@functools.cache
def prepared() -> Path:
    """Return a folder with ``db.sqlite3``, to be copied, and ``static``, to be shared."""
    digest = hashlib.sha256(fingerprint().encode())
    for migration in sorted((ROOT / "webapp" / "migrations").glob("*.py")):
        digest.update(migration.read_bytes())
    made = FOLDER / digest.hexdigest()[:16]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("a") as lock:  # several workers may be here at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            _make(made)
    return made


def _make(made: Path) -> None:
    for old in FOLDER.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
    draft = made.with_suffix(".draft")
    variables = {"LOOKOUT_HOME": draft, "LOOKOUT_STATIC_DIR": draft / "static", "DATABASE_URL": ""}
    environment = os.environ | {name: str(value) for name, value in variables.items()}
    subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environment, check=True)
    draft.rename(made)


def copy_database(home: Path) -> None:
    """Give a state folder the database, unless it has one."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not (home / "db.sqlite3").exists():
        shutil.copyfile(prepared() / "db.sqlite3", home / "db.sqlite3")
        (home / "db.sqlite3").chmod(0o600)
