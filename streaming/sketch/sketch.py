"""A sketch of a stream, immutable: it grows by elements, is merged with others, and is split by place.

Elements wait as they are, and become leaves many at a time, which costs less than a few at a time. The first
`SketchSettings.first` elements decide the bins of the planes. Bins are made anew after `follow` elements, and if they
no longer keep an error budget. All this happens after a count of elements, wherever batches end, so how a stream is
cut into batches does not matter.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from streaming.sketch import rebinning
from streaming.sketch.bins import COMPLETE, Bins, halved
from streaming.sketch.cells import cell_bounds, cells_of
from streaming.sketch.leaves import LeafKeys, Leaves, grouped, no_leaves, summarised, together, with_keys
from streaming.sketch.levels import LeafLevels, bits_of, starts_of
from streaming.sketch.observations import Observations
from streaming.sketch.once import Once
from streaming.sketch.runs import ElementRun, LeafRun, appended, compacted, tiered
from streaming.sketch.settings import InvalidSketch, SketchSettings

# There may be so much more leaves than the budget, before runs are merged and counted.
SLACK = 1.25
# So many elements wait for each leaf that there is, so they take about as much memory as the leaves; but at least and
# at most so many, and no more than there may be leaves. With 8 features the most take 12 MB.
WAITING_A_LEAF = 4
LEAST_WAITING, MOST_WAITING = 1 << 13, 1 << 17


@dataclass(frozen=True)
class Sketch(Once):
    """An immutable version of a sketch.

    Parameters
    ----------
    settings : SketchSettings
    bins : Bins or None
        None before the first elements have made them.
    waiting : tuple of ElementRun
        The elements that are not in leaves yet, oldest first.
    runs : tuple of LeafRun
        Oldest first.
    following : int
        The number of the next run.
    newest_us : int
        The time of the newest element; the least integer without any.
    coarseness : int
        The least level of all leaves.
    count : int
        How many elements were sketched.
    unplaced : int
        How many elements were not, because they have no place in one of the two dimensions.
    since : int
        How many elements came since the bins were made.
    """

    settings: SketchSettings
    bins: Bins | None = None
    waiting: tuple[ElementRun, ...] = ()
    runs: tuple[LeafRun, ...] = ()
    following: int = 0
    newest_us: int = -(2**63)
    coarseness: int = 0
    count: int = 0
    unplaced: int = 0
    since: int = 0

    @classmethod
    def empty(cls, settings: SketchSettings, following: int = 0, bins: Bins | None = None) -> "Sketch":
        """Return a sketch of nothing, whose first run has the number `following`; with bins, if they are known."""
        return cls(settings, bins if settings.planes else Bins(), following=following)

    def __len__(self) -> int:
        """Return how many leaves there are, with those of elements that wait."""
        return sum(map(len, self.asked))

    @property
    def nbytes(self) -> int:
        """The memory that the leaves and the elements that wait take, without indexes."""
        return sum(run.leaves.nbytes for run in self.runs) + sum(run.observations.nbytes for run in self.waiting)

    @property
    def levels(self) -> LeafLevels:
        """The levels of accuracy of all times."""
        return LeafLevels(self.settings, self.newest_us, self.coarseness)

    @property
    def over_budget(self) -> dict[str, float]:
        """Features that would need more bins than they may have to keep their error budget, each with the part kept."""
        kept = () if self.bins is None else self.bins.kept
        found = {plane.feature: part for plane, part in zip(self.settings.planes, kept, strict=False)}
        return {feature: part for feature, part in found.items() if part is not None and part < rebinning.USUAL}

    @functools.cached_property
    def asked(self) -> tuple[LeafRun, ...]:
        """The runs that questions are put to. Before there are bins, each element is a leaf of its own."""
        if not self.waiting:
            return self.runs
        pairs = self.settings.pairs
        waiting = _elements(self)
        if self.bins is not None:
            return (*self.runs, LeafRun(-1, _leaves_of(self, waiting), pairs))
        keys = _keys(self, waiting, np.zeros((0, len(waiting)), dtype=np.int64))
        singly = (keys.start_us, keys.cell, np.arange(len(waiting)))
        leaves = summarised(keys, singly, waiting.time_us, waiting.place, waiting.values, pairs)
        return (*self.runs, LeafRun(-1, leaves, pairs))

    def leaves(self) -> Leaves:
        """Return all leaves as one, each key once; this takes time for every leaf."""
        if not self.asked:
            return no_leaves(self.settings)
        return grouped(together([run.leaves for run in self.asked]), self.settings.pairs)


def add(sketch: Sketch, observations: Observations) -> Sketch:
    """Return a sketch that knows more elements, in the order in which they came.

    Parameters
    ----------
    sketch : Sketch
    observations : Observations
        Infinite values count as missing. Elements without a finite place are counted, and not sketched.
    """
    placed = np.isfinite(observations.place).all(axis=0)
    if not placed.all():
        sketch = replace(sketch, unplaced=sketch.unplaced + int((~placed).sum()))
        observations = observations.take(placed)
    if not np.isfinite(observations.values).all():
        finite = np.where(np.isfinite(observations.values), observations.values, np.nan)
        observations = replace(observations, values=finite)
    while len(observations):
        part = observations.take(slice(0, _room(sketch)))
        observations = observations.take(slice(len(part), None))
        sketch = _with_bins(_taken(sketch, part))
    return _within_budget(sketch)


def merge(sketch: Sketch, other: Sketch) -> Sketch:
    """Return one sketch of the elements of two, which have no element in common.

    The runs of `other` get new numbers. Sums differ from those of any other order of merges by rounding only; extremes
    and counts do not differ.

    Raises
    ------
    InvalidSketch
        If the settings differ.
    """
    if sketch.settings != other.settings:
        raise InvalidSketch("only sketches of equal settings can be merged")
    if sketch.bins is None and other.bins is not None:
        return merge(replace(other, following=max(sketch.following, other.following)), sketch)
    together_ = replace(
        sketch,
        newest_us=max(sketch.newest_us, other.newest_us),
        coarseness=max(sketch.coarseness, other.coarseness),
        count=sketch.count + other.count - _waiting(other),
        unplaced=sketch.unplaced + other.unplaced,
    )
    for run in other.runs:
        together_ = _with_run(together_, run.leaves)
    together_ = _tiered(_levelled(together_))
    for waiting in other.waiting:
        together_ = add(together_, waiting.observations)
    return _within_budget(together_)


def split(sketch: Sketch, region_of: Callable[[np.ndarray], np.ndarray], regions: int) -> list[Sketch]:
    """Return a sketch for each region, with the leaves whose middle lies there; together they are the whole.

    Parameters
    ----------
    sketch : Sketch
    region_of : callable
        Given places, float64 of shape (2, K), returns the region of each, int64 of shape (K,).
    regions : int

    Returns
    -------
    list of Sketch
        Runs get new numbers. What was not sketched is counted in the first one.
    """
    parts, sketch = [], _reduced(sketch)
    for region in range(regions):
        part = replace(sketch, runs=(), waiting=(), count=0, unplaced=0 if region else sketch.unplaced)
        for run in sketch.runs:
            middle = (run.leaves.place_low + run.leaves.place_high) / 2
            part = _with_run(part, run.leaves.take(np.flatnonzero(region_of(middle) == region)))
        for waiting in sketch.waiting:
            mine = waiting.observations.take(region_of(waiting.observations.place) == region)
            part = _with_elements(part, mine) if len(mine) else part
        count = sum(int(run.leaves.count.sum()) for run in part.runs) + _waiting(part)
        parts.append(replace(part, count=count))
    return parts


def reduced(sketch: Sketch) -> Sketch:
    """Return the same sketch with the elements that wait in leaves, if it has bins: for questions that follow."""
    return _within_budget(_reduced(sketch))


def _reduced(sketch: Sketch) -> Sketch:
    if sketch.bins is None or not sketch.waiting:
        return sketch
    return _tiered(_with_run(replace(sketch, waiting=()), _leaves_of(sketch, _elements(sketch))))


def _room(sketch: Sketch) -> int:
    """Return how many elements can come before they become leaves, or the bins are made or checked."""
    settings, since = sketch.settings, sketch.since
    if sketch.bins is None:
        return max(1, settings.first - _waiting(sketch))
    room = _most_waiting(sketch) - _waiting(sketch)
    if _follows(sketch):
        room = min(room, min(settings.follow, rebinning.next_check(settings, since)) - since)
    return max(1, room)


def _most_waiting(sketch: Sketch) -> int:
    wanted = max(LEAST_WAITING, WAITING_A_LEAF * sum(map(len, sketch.runs)))
    return min(wanted, MOST_WAITING, sketch.settings.most_leaves)


def _follows(sketch: Sketch) -> bool:
    return bool(sketch.settings.follow and sketch.settings.planes)


def _waiting(sketch: Sketch) -> int:
    return sum(map(len, sketch.waiting))


def _elements(sketch: Sketch) -> Observations:
    return Observations.together([run.observations for run in sketch.waiting])


def _taken(sketch: Sketch, observations: Observations) -> Sketch:
    """Return a sketch with more elements, for which there is room."""
    newest = max(sketch.newest_us, int(observations.time_us.max()))
    crossed = newest // sketch.settings.time_bin_us > sketch.newest_us // sketch.settings.time_bin_us
    sketch = replace(sketch, newest_us=newest, count=sketch.count + len(observations))
    if crossed:
        sketch = _levelled(sketch)
    if sketch.bins is not None:
        sketch = replace(sketch, since=sketch.since + len(observations))
    return _with_elements(sketch, observations)


def _with_elements(sketch: Sketch, observations: Observations) -> Sketch:
    run = ElementRun(sketch.following, observations)
    waiting, following = tiered((*sketch.waiting, run), sketch.following + 1, appended)
    return replace(sketch, waiting=waiting, following=following)


def _leaves_of(sketch: Sketch, observations: Observations) -> Leaves:
    """Return the leaves of elements by the bins of a sketch."""
    bins = sketch.bins
    assert bins is not None, "without bins, elements wait"
    codes = bins.codes([observations.values[feature] for feature in sketch.settings.plane_features])
    keys = _keys(sketch, observations, codes)
    uniform = int(keys.level.min()) == int(keys.level.max()) == 0
    # Keys have many bits; the numbers that they are made of have few.
    told = [keys.start_us // sketch.settings.time_bin_us, keys.cell]
    told += [(keys.planes & COMPLETE) != 0, *(codes[plane] for plane in bins.order)] if uniform else [keys.planes]
    groups = [number.astype(np.int64) for number in told]
    values = observations.values
    return summarised(keys, groups, observations.time_us, observations.place, values, sketch.settings.pairs)


def _keys(sketch: Sketch, observations: Observations, codes: np.ndarray) -> LeafKeys:
    """Return the keys of elements, given their bins, for the levels of their times."""
    settings = sketch.settings
    level = sketch.levels.of(observations.time_us)
    chosen = list(settings.comoment_features)
    planes = np.zeros(len(observations), dtype=np.int64)
    if len(codes):
        assert sketch.bins is not None, "codes are numbers of bins"
        planes = sketch.bins.packed(codes)
    planes = planes | np.where(np.isfinite(observations.values[chosen]).all(axis=0), COMPLETE, 0)
    cell = cells_of(observations.place, *cell_bounds(settings), settings.cell_bits)
    none = LeafKeys(starts_of(settings, observations.time_us, np.zeros_like(level)), level * 0, cell, planes)
    return _coarser(none, level, settings)


def _coarser(keys: LeafKeys, level: np.ndarray, settings: SketchSettings) -> LeafKeys:
    """Return keys at a higher level."""
    drop = bits_of(settings, keys.level) - bits_of(settings, level)
    start_us = starts_of(settings, keys.start_us, level)
    if not level.any():
        return LeafKeys(start_us, level.astype(np.int8), keys.cell, keys.planes)
    planes = halved(keys.planes, level - keys.level, settings)
    planes = np.where(level >= settings.bin_levels, planes & COMPLETE, planes)
    return LeafKeys(start_us, level.astype(np.int8), keys.cell >> drop, planes)


def _with_run(sketch: Sketch, leaves: Leaves) -> Sketch:
    if not len(leaves):
        return sketch
    run = LeafRun(sketch.following, leaves, sketch.settings.pairs)
    return replace(sketch, runs=(*sketch.runs, run), following=sketch.following + 1)


def _tiered(sketch: Sketch) -> Sketch:
    runs, following = tiered(sketch.runs, sketch.following, compacted)
    return replace(sketch, runs=runs, following=following)


def _levelled(sketch: Sketch) -> Sketch:
    """Return a sketch in which all leaves have the level that they should have by now."""
    levels, runs, coarser = sketch.levels, [], []
    following = sketch.following
    for run in sketch.runs:
        level = levels.of(run.leaves.start_us)
        rising = level > run.leaves.level
        if not rising.any():
            runs.append(run)
            continue
        rows = np.flatnonzero(rising)
        risen, old = level[rows], run.leaves.take(rows)
        keys = LeafKeys(old.start_us, old.level.astype(np.int64), old.cell, old.planes)
        coarser.append(with_keys(old, _coarser(keys, risen, sketch.settings)))
        if len(rows) < len(run):
            runs.append(LeafRun(following, run.leaves.take(np.flatnonzero(~rising)), run.pairs))
            following += 1
    sketch = replace(sketch, runs=tuple(runs), following=following)
    if not coarser:
        return sketch
    return _tiered(_with_run(sketch, grouped(together(coarser), sketch.settings.pairs)))


def _within_budget(sketch: Sketch) -> Sketch:
    """Return a sketch with no more leaves than the settings allow, but for some slack; coarser, if it takes that."""
    most = sketch.settings.most_leaves
    if sum(map(len, sketch.runs)) <= SLACK * most:
        return sketch
    sketch = _one_run(sketch)
    while sum(map(len, sketch.runs)) > most and sketch.coarseness < sketch.levels.most:
        sketch = _one_run(_levelled(replace(sketch, coarseness=sketch.coarseness + 1)))
    return sketch


def _one_run(sketch: Sketch) -> Sketch:
    if len(sketch.runs) < 2:
        return sketch
    return replace(sketch, runs=(compacted(sketch.runs, sketch.following),), following=sketch.following + 1)


def _with_bins(sketch: Sketch) -> Sketch:
    """Return a sketch whose bins are made, or made anew, and whose elements become leaves, if it is time for it."""
    settings, was = sketch.settings, sketch.bins
    if was is None:
        if _waiting(sketch) < settings.first:
            return sketch
        return _reduced(replace(sketch, bins=rebinning.first_bins(settings, _elements(sketch))))
    due = _follows(sketch) and sketch.since >= settings.follow
    if due or (_follows(sketch) and rebinning.is_check(settings, sketch.since)):
        sketch = _reduced(sketch)
        leaves = sketch.leaves()
        bins = rebinning.bins_of(settings, was, leaves)
        is_better = due or rebinning.better(settings, was, bins, leaves)
        return replace(sketch, bins=bins, since=0) if is_better else sketch
    return _reduced(sketch) if _waiting(sketch) >= _most_waiting(sketch) else sketch
