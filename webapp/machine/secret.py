"""Secrets that are made once and then kept in the state folder, such as the key that signs sessions."""

import os
from collections.abc import Callable
from pathlib import Path

from django.core.management.utils import get_random_secret_key

from streaming.state.files import sync


def kept_secret(path: Path, make: Callable[[], str] = get_random_secret_key) -> str:
    """Return the secret in a file; make the file if it is missing. Processes that start together get the same secret.

    Parameters
    ----------
    path : pathlib.Path
        The file. It is readable by its owner only.
    make : function
        Returns a new secret.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(make())
        sync(draft)
        try:
            os.link(draft, path)  # fails if another process was first; then its key counts
            sync(path.parent)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
