"""The report of the paper's workload, beside the paper's figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bench.place.measure import LIMIT_MS, PlaceRow, fast_enough
from bench.place.workload import Workload
from bench.report import table

BEGIN, END = "<!-- place: begin -->", "<!-- place: end -->"
KINDS = {"ranges": "ranges", "neighbours": "kNN"}


@dataclass
class PlaceReport:
    """The rows of the paper's queries, and those of smaller ones, each with their workload."""

    machine: str
    paper: Workload
    small: Workload
    rows: list[PlaceRow] = field(default_factory=list)
    growth: list[PlaceRow] = field(default_factory=list)

    def markdown(self) -> str:
        """Return everything as Markdown."""
        parts = [self.machine, self._verdict(), self._beside(), self._latencies(), self._work(), self._growth()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _verdict(self):
        good = fast_enough(self.rows)
        return (
            f"The largest share of the {self.paper.queries:,} ranges and {self.paper.queries:,} queries for neighbours "
            f"that kept answer updates under 1 s (99th percentile): **{_share(good, self.paper)}, {good:,} of each**, "
            f"with all {self.paper.objects:,} objects and {self.paper.rate:,.0f} reports a second."
            if self.rows
            else ""
        )

    def _beside(self):
        """Put the paper's figures beside those of the largest share that is fast enough."""
        row = next((row for row in self.rows if row.queries == fast_enough(self.rows)), None)
        if row is None:
            return ""

        def told(ages):
            return {kind: _median(row.latency(ages[kind])) for kind in KINDS}

        first = {kind: _milliseconds(row.first_ms[kind]) for kind in KINDS}
        lines = [
            ["plan initialisation", "under 1 s, slightly more with the size", "under 1 s, more with k", first],
            ["answer update", "under 1 s", "under 1 s", told(row.span.answers)],
            ["query update", "75 ms at 1 %, 85 ms at 10 %", "more with k (a figure)", told(row.span.queries)],
        ]
        handed = _median(row.latency(row.span.handoffs))
        focal = _median(row.latency(row.span.focal_handoffs))
        return table(
            ["", "paper, ranges", "here, ranges", "paper, kNN", "here, kNN"],
            [[what, paper, ours["ranges"], knn, ours["neighbours"]] for what, paper, knn, ours in lines]
            + [
                ["handoff of an object", "not given", handed, "not given", ""],
                ["handoff of a focal object", "more with the size (a figure)", focal, "more with k (a figure)", ""],
            ],
        )

    def _latencies(self):
        head = ["share", "of each kind"]
        head += [f"{what}, {kind}" for what in ("answer update", "query update") for kind in KINDS.values()]
        head += ["handoff", "focal handoff", "first answer, ranges", "first answer, kNN"]
        return table(
            [*head],
            [
                [
                    _share(row.queries, self.paper),
                    f"{row.queries:,}",
                    *(
                        _both(row.latency(ages[kind]))
                        for ages in (row.span.answers, row.span.queries)
                        for kind in KINDS
                    ),
                    _both(row.latency(row.span.handoffs)),
                    _both(row.latency(row.span.focal_handoffs)),
                    *(_milliseconds(row.first_ms[kind]) for kind in KINDS),
                ]
                for row in self.rows
            ],
        )

    def _work(self):
        return table(
            ["share", *_WORK],
            [[_share(row.queries, self.paper), *_work(row)] for row in self.rows],
        )

    def _growth(self):
        return table(
            ["of each kind", "members of answers", *_WORK],
            [
                [f"{row.queries:,}", f"{row.queries * self.small.answer_rows():,.0f}", *_work(row)]
                for row in self.growth
            ],
        )


_WORK = (
    "reports/s",
    "tuples/s",
    "partial tuples/s",
    "inputs/s",
    "MB/s",
    "ms/batch",
    "engine cores",
    "engine us/report",
    "engine MiB",
    "Redis MiB",
    "waiting blocks",
)


def _work(row):
    span = row.span
    return [
        f"{row.elements_per_s:,.0f}",
        f"{row.per_s(span.tuples):,.0f}",
        f"{row.per_s(span.partial):,.0f}",
        f"{row.inputs_per_s:,.0f}",
        f"{row.per_s(span.bytes) / 1e6:,.1f}",
        f"{row.batch_ms:,.0f}",
        f"{row.cores.get('engine', 0.0):.2f}",
        f"{row.engine_us:,.1f}",
        f"{row.memory_mib.get('engine', 0.0):,.0f}",
        f"{row.memory_mib.get('redis', 0.0):,.0f}",
        f"{row.backlog:,}",
    ]


def share_figures(row: PlaceRow, workload: Workload) -> dict[str, float | str | None]:
    """Return the figures of one share of a workload by name; ages are in milliseconds."""
    ages = {
        f"{name} {what} ms": row.latency(row.span.answers[kind])[key]
        for kind, name in KINDS.items()
        for what, key in (("p50", "p50_ms"), ("p99", "p99_ms"))
    }
    return {
        "share": _share(row.queries, workload),
        "objects": workload.objects,
        "of each kind": row.queries,
        "reports/s": row.elements_per_s,
        "tuples/s": row.per_s(row.span.tuples),
        **ages,
        "ms/batch": row.batch_ms,
        "engine cores": row.cores.get("engine"),
        "engine MiB": row.memory_mib.get("engine"),
    }


def _share(queries: int, workload: Workload) -> str:
    """Return a number of queries as a fraction of a workload's number.

    Examples
    --------
    >>> _share(900, Workload()), _share(9_000, Workload()), _share(0, Workload())
    ('1/10', '1', '0')
    >>> _share(4, Workload()), _share(4_000, Workload()), _share(3_000, Workload())
    ('1/2,250', '1/2.2', '1/3')
    """
    if not queries:
        return "0"
    part = workload.queries / queries
    return "1" if part == 1 else f"1/{part:,.{0 if part >= 10 else 1}f}".removesuffix(".0")


def _both(latency: Mapping) -> str:
    """Return the median and the 99th percentile of ages in ms, as text."""
    return "-" if not latency["rows"] else f"{latency['p50_ms']:,.0f} / {latency['p99_ms']:,.0f}"


def _median(latency: Mapping) -> str:
    if not latency["rows"]:
        return "none seen"
    slow = "" if latency["p99_ms"] <= LIMIT_MS else " (p99 over 1 s)"
    return f"{latency['p50_ms']:,.0f} ms, p99 {latency['p99_ms']:,.0f} ms{slow}"


def _milliseconds(times: np.ndarray | Sequence[float]) -> str:
    """Return the median and the longest of some times.

    Examples
    --------
    >>> _milliseconds([100, 300, 200]), _milliseconds([])
    ('200 ms, at most 300 ms', '-')
    """
    return f"{np.median(times):,.0f} ms, at most {np.max(times):,.0f} ms" if len(times) else "-"
