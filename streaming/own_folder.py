"""A folder that a process has to itself."""

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from streaming.file_lock import try_lock


@contextlib.contextmanager
def own_folder(root: Path) -> Iterator[Path]:
    """Have a folder that no other process has meanwhile: the first numbered one in `root` that nobody has locked.

    The kernel releases the lock when the process ends, even if it is killed. So there are never more folders than
    there were processes at once.

    Parameters
    ----------
    root : Path
        Created if missing, readable by its owner alone.
    """
    folders = (root / str(number) for number in count(1))
    with contextlib.ExitStack() as held:
        yield next(folder for folder in folders if _locked(folder, held))


def _locked(folder: Path, held: contextlib.ExitStack) -> bool:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return try_lock(held.enter_context((folder / "lock").open("a")))
