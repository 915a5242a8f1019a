"""What tasks report of the objects of their regions: from it, the web application estimates what a query will cost."""

from base64 import b64encode
from collections.abc import Iterable

from streaming.operators.box_sample import packed, together
from streaming.servers.region.object_sample import object_sample
from streaming.servers.region.state import Region

# So many boxes of objects all tasks of an engine report together: some 30 kB.
TOLD = 512


def told_objects(regions: Iterable[Region], tasks: int) -> str:
    """Return a sample of the objects of the regions of a task, one of several; `webapp.queries.estimating` reads it."""
    samples = together(object_sample(region.objects) for region in regions)
    return b64encode(packed(samples, max(1, TOLD // tasks))).decode()
