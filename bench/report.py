"""The report: tables in Markdown, printed and kept in docs/benchmarks.md between two markers."""

import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import psutil

from bench.baselines import Baseline
from bench.frames import Frames
from bench.joins import Joined, Naive, rate_text
from bench.measure import Row
from bench.scenarios import FULL_SPEED, Scenario

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
GIB = 1024.0


@dataclass
class Report:
    """Everything that a run has measured so far; memory in MiB by program."""

    machine: str
    rows: list[Row] = field(default_factory=list)
    baselines: list[Baseline] = field(default_factory=list)
    frames: list[Frames] = field(default_factory=list)
    demo_mib: dict[str, float] = field(default_factory=dict)
    joins: list[Joined] = field(default_factory=list)
    naive: list[Naive] = field(default_factory=list)

    def row(self, name: str) -> Row | None:
        """Return the row of a scenario; None if it was not measured."""
        return next((row for row in self.rows if row.scenario.name == name), None)

    def joined(self, name: str) -> Joined | None:
        """Return the row of a scenario of joins; None if it was not measured."""
        return next((row for row in self.joins if row.scenario.name == name), None)

    def markdown(self) -> str:
        """Return everything as Markdown."""
        parts = [self.machine, _goals(self), _rows(self.rows), _cost(self), _baselines(self), _frames(self.frames)]
        parts.append(_joins(self))
        return "\n\n".join(part for part in [*parts, _memory(self), _cores(self.rows)] if part) + "\n"


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


def machine() -> str:
    """Describe the machine, and how busy other programs keep it; call this before anything is started."""
    busy = psutil.cpu_percent(interval=2.0) / 100 * psutil.cpu_count()
    memory_gib = psutil.virtual_memory().total / 2**30
    versions = f"Python {platform.python_version()}, PySpark {version('pyspark')}, pyarrow {version('pyarrow')}"
    return (
        f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}: {_processor()}, {psutil.cpu_count()} cores, "
        f"{memory_gib:.0f} GiB, {platform.system()} {platform.release()}, {versions}. "
        f"Other programs kept {busy:.1f} cores busy before the start."
    )


def _processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _speed(rate: int) -> str:
    return "as fast as possible" if rate == FULL_SPEED else f"{rate:,}"


def _load(scenario: Scenario) -> str:
    kind = "gateway socket, small steps" if scenario.wire else "blocks, small steps"
    return "blocks, uniform jumps" if scenario.motion == "jump" else kind


def _number(value: float | None, form: str = ",.0f") -> str:
    return "-" if value is None else format(value, form)


def _rows(rows):
    head = ["asked/s", "queries", "objects", "load", "elements/s", "results/s", "batches/s", "p50 ms", "p99 ms"]
    head += ["resyncs", "memory MiB", "CPU cores", "engine cores", "engine us/element"]
    return table(
        head,
        [
            [
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
            for row in rows
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


def _extra(report, name):
    """Return the processor time of an element with 10,000 queries, divided by that with 100; 0 if it is not known."""
    few, many = report.row(name), report.row(name.replace("-100q-", "-10000q-"))
    return many.engine_cpu_us / few.engine_cpu_us if few and many and few.engine_cpu_us else 0.0


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


def _frames(frames):
    return table(
        ["moving objects", "fewest in view", "frames/s", "p99 ms", "longest frame ms"],
        [
            [f"{f.objects:,}", f"{f.visible:,}", f"{f.fps:.1f}", f"{f.p99_ms:.0f}", f"{f.longest_ms:.0f}"]
            for f in frames
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


def _goals(report):
    """Compare the goals with what was measured."""
    goals = []

    def add(goal, measured, met):
        goals.append([goal, measured, "yes" if met else "no"])

    for name in ("gateway-20k-100q-100k", "20k-100q-100k"):
        if row := report.row(name):
            p50, p99 = (row.latency[key] or float("inf") for key in ("p50_ms", "p99_ms"))
            add(f"20,000/s, 100 queries ({_load(row.scenario)}): p50 < 400 ms", f"{p50:,.0f} ms", p50 < 400)
            add(f"20,000/s, 100 queries ({_load(row.scenario)}): p99 < 1 s", f"{p99:,.0f} ms", p99 < 1000)
    for size in ("100k", "1M"):
        if row := report.row(f"max-100q-{size}"):
            rate, told = (
                row.work.elements_per_s,
                f"{row.work.elements_per_s:,.0f}, {row.work.results_per_s:,.0f} results/s",
            )
            add(f"100 queries of 1 %, {size} objects: at least 300,000 elements/s", told, rate >= 300_000)
        if extra := _extra(report, f"100k-100q-{size}"):
            goal = f"10,000 queries, {size} objects, 100,000/s: at most 25 % more CPU per element"
            add(goal, f"{100 * (extra - 1):+.0f} %", extra <= 1.25)
    for frames, least in zip(sorted(report.frames, key=lambda f: f.objects), (30, 20), strict=False):
        add(f"{frames.objects:,} objects: {least} frames/s", f"{frames.fps:.1f}", frames.fps >= least)
        add(
            f"{frames.objects:,} objects: no frame above 200 ms",
            f"{frames.longest_ms:.0f} ms",
            frames.longest_ms <= 200,
        )
    for name, goal, least in (
        ("join-areas", "20 polygons of 10,000 vertices, within", 300_000),
        ("join-roads", "100,000 roads, within 5 m", 100_000),
    ):
        for size in ("100k", "1M"):
            if joined := report.joined(f"{name}-{size}"):
                rate = joined.work.elements_per_s
                add(f"{goal}, {size} objects: at least {least:,} elements/s", f"{rate:,.0f}", rate >= least)
    for differ in ("names", "areas", "filters"):
        one, many = report.joined("join-roads-100k"), report.joined(f"joins-100-{differ}")
        if one and many and one.engine_cpu_us:
            ratio = many.engine_cpu_us / one.engine_cpu_us
            goal = f"100 joins of a stream and a layer that differ in {differ}: less than twice the CPU of one"
            add(goal, f"{ratio:.2f} times", ratio < 2)
    if joined := report.joined("join-1M-roads"):
        total = sum(joined.memory_mib.values())
        add("1,000,000 roads joined: within 4 GiB", f"{total / GIB:.2f} GiB", total <= 4 * GIB)
    if report.demo_mib:
        total = sum(report.demo_mib.values())
        add("demonstration: within 4 GiB", f"{total / GIB:.2f} GiB", total <= 4 * GIB)
    if rows := _at(report, 20_000):
        total = max(sum(row.memory_mib.values()) for row in rows)
        add("20,000 elements/s: within 6 GiB", f"{total / GIB:.2f} GiB", total <= 6 * GIB)
    return table(["asked for", "measured", "met"], goals)


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
