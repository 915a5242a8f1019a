"""The key that signs sessions, made once and kept in the state folder."""

import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key


def kept_secret(path: Path) -> str:
    """Return the secret in a file, making the file where it is absent; processes that start together agree on it.

    Parameters
    ----------
    path : pathlib.Path
        Readable by its owner only.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(get_random_secret_key())
        try:
            os.link(draft, path)  # fails where another process was first, whose key then counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
