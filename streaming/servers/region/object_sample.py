"""A sample of the objects of a region, by stream, for estimates of what queries will cost."""

import numpy as np

from streaming.operators.box_sample import BoxSample
from streaming.servers.region.objects import ObjectTable
from streaming.servers.sorted_runs import Run

# So many objects are looked at, about, and so many of each stream are drawn.
LOOKED_AT, DRAWN = 32_768, 512
KEYS = 2**64


def object_sample(objects: ObjectTable) -> dict[int, BoxSample]:
    """Return a sample of objects by stream number.

    Objects are ordered by the hash of their key, so those of a range of hashes are a fair part of all.
    """
    share = min(1.0, LOOKED_AT / max(1, len(objects)))
    limit = int(share * KEYS) - KEYS // 2

    def chosen(run: Run) -> np.ndarray:
        return np.arange(len(run.key) if share == 1.0 else np.searchsorted(run.key, limit))

    looked = objects.select(chosen)
    streams = np.unique(looked.stream).tolist()
    return {stream: BoxSample.drawn(looked.bounds[looked.stream == stream], DRAWN, share) for stream in streams}
