"""How often the exact answer lies within the bounds, over random questions, and how wide the bounds are."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bench.sketch.recordings import Recording
from streaming.sketch import density, statistics
from streaming.sketch.chosen import choose
from streaming.sketch.selection import Selection, TimeIntervals, ValueRange
from streaming.sketch.settings import DAY_US, HOUR_US

PARTS = (0.1, 0.5, 0.9)
OUTLIERS = 2.0


@dataclass
class Tally:
    """Of one kind of question: whether the bounds held, and how wide they were."""

    held: list[bool] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)

    def note(self, answer, exact, unit):
        """Note an answer; width and error are told in a unit."""
        self.held.append(bool(answer.low <= exact <= answer.high))
        self.width.append(answer.width / unit)
        self.error.append(abs(answer.value - exact) / unit)


def coverage(recording: Recording, questions: int, confidence: float, seed: int = 1) -> dict[str, Tally]:
    """Ask so many random questions of each kind; return a tally for each kind."""
    sketch, tallies = recording.sketch(), defaultdict(Tally)
    drawn, asked = np.random.default_rng(seed), 0
    while asked < questions:
        selection, rows = random_selection(recording, drawn)
        feature = str(drawn.choice(recording.settings.features))
        values = recording.elements.values[recording.settings.position(feature)][rows]
        values = values[~np.isnan(values)]
        if len(values) < 2:
            continue
        asked += 1
        chosen, known = choose(sketch, selection), recording.known(feature)
        for kind, ask, exact, unit in questions_of(feature, values, known, drawn):
            tallies[kind].note(ask(chosen, confidence), exact, unit)
        tallies["count"].note(statistics.count(chosen, None, confidence), len(rows), len(rows))
        for answer, exact in zip(
            density.quantiles(chosen, feature, PARTS, confidence),
            np.quantile(values, PARTS, method="inverted_cdf"),
            strict=True,
        ):
            tallies["quantile"].note(answer, exact, known.deviation)
        _correlation(recording, chosen, rows, confidence, drawn, tallies["correlation"])
    return tallies


def questions_of(feature, values, known, drawn) -> Iterator[tuple[str, Callable, float, float]]:
    """Yield questions about a feature: the kind, the question, its exact answer, and the unit of widths."""
    low, high = np.sort(drawn.choice(known.values, 2))
    spread = known.deviation
    yield "mean", lambda chosen, c: statistics.mean(chosen, feature, c), values.mean(), spread
    yield "std", lambda chosen, c: statistics.std(chosen, feature, c), values.std(ddof=1), spread
    yield "min", lambda chosen, c: statistics.minimum(chosen, feature, c), values.min(), spread
    yield "max", lambda chosen, c: statistics.maximum(chosen, feature, c), values.max(), spread
    inside = ((values >= low) & (values <= high)).mean()
    yield "integral", lambda chosen, c: density.integral(chosen, feature, low, high, c), inside, 1.0
    far = (np.abs(values - values.mean()) > OUTLIERS * values.std(ddof=1)).mean()
    yield "outliers", lambda chosen, c: density.outliers(chosen, feature, OUTLIERS, c), far, 1.0


def _correlation(recording, chosen, rows, confidence, drawn, tally):
    one, other = map(str, drawn.choice(recording.settings.comoments, 2, replace=False))
    rows = rows[recording.complete[rows]]
    pair = np.stack([recording.elements.values[recording.settings.position(name)][rows] for name in (one, other)])
    if pair.shape[1] < 3 or not (pair.std(axis=1) > 1e-9 * np.abs(pair).max(axis=1)).all():
        return
    tally.note(statistics.correlation(chosen, one, other, confidence), np.corrcoef(pair)[0, 1], 1.0)


def random_selection(recording: Recording, drawn: np.random.Generator) -> tuple[Selection, np.ndarray]:
    """Return a random selection of a box, times and values, each with some chance, and the rows that it chooses."""
    elements, settings = recording.elements, recording.settings
    box = _box(recording, drawn) if drawn.random() < 0.8 else None
    times = _times(elements.time_us, drawn) if drawn.random() < 0.7 else None
    ranges: tuple[ValueRange, ...] = ()
    if drawn.random() < 0.4:
        feature = str(drawn.choice(settings.features))
        low, high = np.sort(drawn.choice(recording.known(feature).values, 2))
        ranges = (ValueRange(feature, low, high),)
    # Elements are ordered by time.
    at = [[0, len(elements)]] if times is None else np.searchsorted(elements.time_us, times.limits)
    rows = np.concatenate([np.arange(start, end) for start, end in at])
    if box is not None:
        x, y = elements.place[:, rows]
        rows = rows[(x >= box[0]) & (x <= box[2]) & (y >= box[1]) & (y <= box[3])]
    for one in ranges:
        column = elements.values[settings.position(one.feature)][rows]
        rows = rows[(column >= one.low) & (column <= one.high)]
    return Selection(() if box is None else (tuple(box.tolist()),), times, ranges), rows


def _box(recording, drawn):
    low, high = recording.corners
    size = (high - low) * np.exp(drawn.uniform(np.log(0.03), np.log(0.8), 2))
    middle = recording.elements.place[:, drawn.integers(len(recording.elements))]
    return np.concatenate([np.maximum(middle - size / 2, low), np.minimum(middle + size / 2, high)])


def _times(time_us, drawn):
    first, last = np.sort(time_us[drawn.integers(len(time_us), size=2)])
    if last - first < 3 * DAY_US or drawn.random() < 0.6:
        return TimeIntervals.between(int(first), int(last) + 1)
    hour, days = int(drawn.integers(0, 20)), np.arange(first // DAY_US, min(last // DAY_US, first // DAY_US + 90) + 1)
    starts = days * DAY_US + hour * HOUR_US
    return TimeIntervals.of(np.column_stack([starts, starts + 3 * HOUR_US]).tolist())


def rows_of(recording: Recording, tallies: dict[str, Tally]) -> list[str]:
    """Return rows of a table. Where there is no answer, its bounds do not hold; figures are of the others."""
    rows = []
    for kind, tally in tallies.items():
        figures = [np.nanmedian(tally.width), np.nanmedian(tally.error), np.nanquantile(tally.error, 0.95)]
        told = " | ".join(f"{figure:.3g}" for figure in figures)
        rows.append(f"| {recording.name} | {kind} | {len(tally.held):,} | {np.mean(tally.held):.1%} | {told} |")
    return rows
