"""Loads what the process of an import needs; the fork server of `tests.layers.forked` does so once."""

import os

from streaming.layers.__main__ import SKIPPED
from streaming.layers.offline import OPTIONS

# GDAL reads these when it is loaded.
os.environ.update(OPTIONS, GDAL_SKIP=SKIPPED)
__import__("streaming.layers.importing")
