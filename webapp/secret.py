"""The key that signs sessions: made once, then kept in the state folder."""

import os
from pathlib import Path

from django.core.management.utils import get_random_secret_key


def kept_secret(path: Path) -> str:
    """Return the secret in a file; make the file if it is missing. Processes that start together get the same secret.

    Parameters
    ----------
    path : pathlib.Path
        The file. It is readable by its owner only.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(get_random_secret_key())
        try:
            os.link(draft, path)  # fails if another process was first; then its key counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text()
