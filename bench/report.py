"""The report: tables in Markdown, printed and kept in docs/benchmarks.md between two markers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.against import Compared
from bench.baselines import Baseline
from bench.frames import Frames
from bench.joins import Joined, Naive, rate_text
from bench.machine import MUCH, Conditions
from bench.measure import Row
from bench.scenarios import FULL_SPEED, Scenario
from bench.tile38 import Tile38Row

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
# Marks what was measured while the host took processor time away.
DISTURBED = " (disturbed)"
FAILED_CHARACTERS = 300


@dataclass(frozen=True)
class Measured:
    """Figures of a scenario that has its own; those with the same `what` share a table."""

    name: str
    what: str
    figures: Mapping[str, float | str | None]


@dataclass
class Report:
    """Everything that a run has measured so far.

    Parameters
    ----------
    machine : str
    rows, measured, baselines, frames, joins, naive, tile38, compared : list
        What was measured.
    demo_mib : dict
        The memory of each program of the demonstration, in MiB.
    conditions : dict
        Of each scenario, by its name.
    failed : dict
        Why scenarios failed, by their names.
    missing : str
        What was not installed.
    """

    machine: str
    rows: list[Row] = field(default_factory=list)
    baselines: list[Baseline] = field(default_factory=list)
    frames: list[Frames] = field(default_factory=list)
    demo_mib: dict[str, float] = field(default_factory=dict)
    joins: list[Joined] = field(default_factory=list)
    naive: list[Naive] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    tile38: list[Tile38Row] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    conditions: dict[str, Conditions] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    missing: str = ""

    @property
    def whole(self) -> bool:
        """Whether nothing failed or was missing."""
        return not self.failed and not self.missing

    def row(self, name: str) -> Row | None:
        """Return the row of a scenario; None if it was not measured."""
        return next((row for row in self.rows if row.scenario.name == name), None)

    def markdown(self) -> str:
        """Return everything as Markdown."""
        parts = [self.machine, _failures(self), _rows(self), _beside(self), *_measured(self), _cost(self)]
        parts += [_baselines(self), _frames(self), _joins(self), _comparison(self)]
        return (
            "\n\n".join(part for part in [*parts, _memory(self), _cores(self.rows), _conditions(self)] if part) + "\n"
        )

    def title(self, name: str) -> str:
        """Return the name of a scenario as the tables have it: marked, if the host took much processor time away."""
        conditions = self.conditions.get(name)
        return name + DISTURBED if conditions is not None and conditions.disturbed else name


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, with columns of even width; empty without rows.

    Examples
    --------
    >>> print(table(["a", "rate"], [["x", "1"]]))
    | a | rate |
    | - | ---- |
    | x | 1    |
    """
    cells = [list(head), *map(list, rows)]
    if len(cells) == 1:
        return ""
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join("| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells)


def _speed(rate: int) -> str:
    return "as fast as possible" if rate == FULL_SPEED else f"{rate:,}"


def _load(scenario: Scenario) -> str:
    kind = "gateway socket, small steps" if scenario.wire else "blocks, small steps"
    return "blocks, uniform jumps" if scenario.motion == "jump" else kind


def _number(value: float | None, form: str = ",.0f") -> str:
    return "-" if value is None else format(value, form)


def _failures(report):
    told = [[name, " ".join(why.split())[-FAILED_CHARACTERS:].replace("|", "/")] for name, why in report.failed.items()]
    return "\n\n".join(part for part in (report.missing, table(["failed", "why"], told)) if part)


def _measured(report):
    """Return a table for each kind of scenario that has figures of its own."""
    tables = []
    for what in dict.fromkeys(row.what for row in report.measured):
        rows = [row for row in report.measured if row.what == what]
        head = ["scenario", *rows[0].figures]
        tables.append(table(head, [[report.title(r.name), *map(figure_text, r.figures.values())] for r in rows]))
    return tables


def figure_text(value: float | str | None) -> str:
    """Return a figure as text, with as many digits as say something.

    Examples
    --------
    >>> [figure_text(value) for value in (20_000, 12.345, 0.1234, 1234.5, None, "1/30")]
    ['20,000', '12.3', '0.123', '1,234', '-', '1/30']
    """
    if value is None or isinstance(value, str):
        return value or "-"
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def _beside(report):
    """Put Tile38 beside the rows of as many queries and objects."""
    head = ["beside Tile38", "asked/s", "queries", "objects", "taken/s", "p50 ms", "p99 ms", "cores", "memory MiB"]
    rows = []
    for peer in report.tile38:
        ages = (_number(peer.latency[key], ",.1f") for key in ("p50_ms", "p99_ms"))
        size = [_speed(peer.rate), f"{peer.queries:,}", f"{peer.objects:,}"]
        used = [f"{peer.cores:.2f}", _number(peer.memory_mib)]
        rows.append([report.title("tile38"), *size, _number(peer.sets_per_s), *ages, *used])
        for row in report.rows:
            asked = row.scenario
            if (asked.rate, asked.queries, asked.objects, asked.motion) == (
                peer.rate,
                peer.queries,
                peer.objects,
                "walk",
            ):
                ages = (_number(row.latency[key], ",.1f") for key in ("p50_ms", "p99_ms"))
                used = [f"{sum(row.cores.values()):.2f}", _number(sum(row.memory_mib.values()))]
                rows.append([report.title(asked.name), *size, _number(row.work.elements_per_s), *ages, *used])
    return table(head, rows)


def _comparison(report):
    """Put the figures of this checkout beside those of another."""
    rows = []
    for compared in report.compared:
        name = compared.name + (DISTURBED if compared.conditions.disturbed else "")
        if compared.failed:
            rows.append([name, " ".join(compared.failed.split())[-FAILED_CHARACTERS:].replace("|", "/"), "-", "-", "-"])
        rows += [
            [name, what, figure_text(here), figure_text(there), _number(ratio, ".2f")]
            for what, here, there, ratio in compared.ratios()
        ]
    return table(["scenario", "figure", "here", "there", "here / there"], rows)


def _conditions(report):
    """Say what the machine did besides during each scenario."""
    rows = [
        [name, f"{c.seconds:.0f}", f"{100 * c.steal:.1f}", f"{c.load:.1f}"] for name, c in report.conditions.items()
    ]
    told = table(["conditions", "seconds", "CPU taken by the host, %", "load"], rows)
    marked = any(conditions.disturbed for conditions in report.conditions.values())
    note = f"{DISTURBED.strip()}: the host took away more than {100 * MUCH:.0f} % of the processor time."
    return f"{told}\n\n{note}" if marked else told


def _rows(report):
    head = [
        "scenario",
        "asked/s",
        "queries",
        "objects",
        "load",
        "elements/s",
        "results/s",
        "batches/s",
        "p50 ms",
        "p99 ms",
    ]
    head += ["resyncs", "memory MiB", "CPU cores", "engine cores", "engine us/element"]
    return table(
        head,
        [
            [
                report.title(row.scenario.name),
                _speed(row.scenario.rate),
                f"{row.scenario.queries:,}",
                f"{row.scenario.objects:,}",
                _load(row.scenario),
                _number(row.work.elements_per_s),
                _number(row.work.results_per_s),
                _number(row.work.batches_per_s, ".1f"),
                _number(row.latency["p50_ms"]),
                _number(row.latency["p99_ms"]),
                _number(row.latency["resyncs"]),
                _number(sum(row.memory_mib.values())),
                _number(sum(row.cores.values()), ".2f"),
                _number(row.cores.get("engine"), ".2f"),
                _number(row.engine_cpu_us, ".2f"),
            ]
            for row in report.rows
        ],
    )


def _cost(report):
    """Compare 10,000 queries with 100."""
    pairs = [
        (row, report.row(row.scenario.name.replace("-100q-", "-10000q-")))
        for row in report.rows
        if row.scenario.queries == 100 and not row.scenario.wire
    ]
    return table(
        ["10,000 queries against 100", "engine CPU per element", "elements/s"],
        [
            [
                f"{_speed(few.scenario.rate)}, {few.scenario.objects:,} objects, {_load(few.scenario)}",
                _ratio(many.engine_cpu_us, few.engine_cpu_us),
                _ratio(many.work.elements_per_s, few.work.elements_per_s),
            ]
            for few, many in pairs
            if many is not None
        ],
    )


def _ratio(value, reference):
    return f"{100 * (value / reference - 1):+.0f} %" if reference else "-"


def _baselines(report):
    def against(baseline):
        row = report.row(f"max-{baseline.queries}q-1M") or report.row(f"max-{baseline.queries}q-100k")
        return f"{row.work.elements_per_s / baseline.elements_per_s:,.1f}" if row else "-"

    return table(
        ["one process, in memory", "queries", "elements/s", "results/s", "Lookout is faster by"],
        [
            [b.way, f"{b.queries:,}", f"{b.elements_per_s:,.0f}", f"{b.results_per_s:,.0f}", against(b)]
            for b in report.baselines
        ],
    )


def _frames(report):
    return table(
        ["moving objects", "fewest in view", "frames/s", "p99 ms", "longest frame ms"],
        [
            [f"{f.objects:,}", f"{f.visible:,}", f"{f.fps:.1f}", f"{f.p99_ms:.0f}", f"{f.longest_ms:.0f}"]
            for f in report.frames
        ],
    )


def _joins(report):
    """Compare the joins with GeoPandas, which was measured once for all scenarios of a stack."""
    naive = {row.scenario.stack: row for row in report.naive}
    head = ["joined with", "joins", "that differ in", "objects", "asked/s", "elements/s", "results/s", "pairs/element"]
    head += ["engine cores", "engine us/element", "GeoPandas elements/s", "faster by", "engine MiB", "together MiB"]
    return table(
        head,
        [
            [
                f"{row.scenario.features:,} {row.scenario.layer}",
                f"{row.scenario.joins}",
                row.scenario.differ if row.scenario.joins > 1 else "-",
                f"{row.scenario.objects:,}",
                rate_text(row.scenario),
                _number(row.work.elements_per_s),
                _number(row.work.results_per_s),
                _number(plain.pairs_per_element, ".2f"),
                _number(row.cores.get("engine"), ".2f"),
                _number(row.engine_cpu_us, ".2f"),
                _number(plain.elements_per_s),
                _number(row.work.elements_per_s / plain.elements_per_s, ".1f"),
                _number(row.memory_mib.get("engine")),
                _number(sum(row.memory_mib.values())),
            ]
            for row in report.joins
            if (plain := naive.get(row.scenario.stack))
        ],
    )


def _memory(report):
    loads = {"demonstration": report.demo_mib} if report.demo_mib else {}
    loads |= {row.scenario.name: row.memory_mib for row in _at(report, 20_000)}
    return _by_program("memory in MiB", loads, ",.0f")


def _cores(rows):
    return _by_program("CPU cores", {row.scenario.name: row.cores for row in rows}, ".2f")


def _by_program(what, loads, form):
    """Return a table of figures by program, with their sums."""
    programs = sorted({program for figures in loads.values() for program in figures})
    return table(
        [what, *programs, "together"],
        [
            [load, *(_number(figures.get(program), form) for program in programs), _number(sum(figures.values()), form)]
            for load, figures in loads.items()
        ],
    )


def _at(report, rate):
    return [row for row in report.rows if row.scenario.rate == rate]


def keep(text: str, page: Path = PAGE, begin: str = BEGIN, end: str = END) -> None:
    """Write the figures between the two markers of a page.

    Raises
    ------
    ValueError
        When the page lacks a marker.
    """
    before, _, rest = page.read_text().partition(begin)
    _, marker, after = rest.partition(end)
    if not marker:
        raise ValueError(f"{page} must have the lines {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
