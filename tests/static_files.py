"""The page's static files, collected once for all servers that one run of the tests starts."""

import atexit
import functools
import shutil
import tempfile
from pathlib import Path


@functools.cache
def shared_static() -> Path:
    """Return the folder of the collected files, which the first server fills; it goes when this process ends."""
    folder = tempfile.mkdtemp(prefix="lookout-static-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
