"""When levels are merged: each is many times larger than the next, and none grows without bound by a merge.

References
----------
P. O'Neil, E. Cheng, D. Gawlick, E. O'Neil, "The Log-Structured Merge-Tree", Acta Informatica 33, 1996.
"""

from collections.abc import Sequence

# A level has at least this many times as many entries as the next; one of `LARGE` entries or more, `LARGE_RATIO` times.
# So single changes copy little, and thousands that come at once do not copy a large level again and again.
RATIO = 32
LARGE, LARGE_RATIO = 2_000, 4
# A merge makes no level with more entries than this: to compile one of 25,000 queries takes 80 ms, of 100,000 290.
LARGEST = 25_000


def staying(sizes: Sequence[int]) -> int:
    """Return how many levels stay, given the sizes of all; the others, at least the last and newest one, become one.

    Examples
    --------
    >>> staying([4_000, 100, 1]), staying([4_000, 100, 4]), staying([24_000, 10_000])
    (2, 1, 1)
    """
    stay, merged = len(sizes), 0
    # One merge for all levels that the last one, grown by the others, is too large for.
    while stay and (not merged or sizes[stay - 1] < merged * _ratio(sizes[stay - 1])):
        if merged and sizes[stay - 1] + merged > LARGEST:
            break
        stay -= 1
        merged = max(1, merged + sizes[stay])
    return stay


def _ratio(size: int) -> int:
    return RATIO if size < LARGE else min(RATIO, LARGE_RATIO)
