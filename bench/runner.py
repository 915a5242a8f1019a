"""Run scenarios one after the other, on the stacks that they need; one that fails does not end the run."""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import groupby
from typing import Any

from bench import baselines, frames, joins, tile38
from bench.machine import machine, watched
from bench.measure import measure
from bench.place.measure import share_of
from bench.place.report import share_figures
from bench.processes import pss_mib
from bench.report import Measured, Report
from bench.scenarios import CASES, FRAMES, JOINS, PLACE, SCENARIOS, TILE38, scaled
from bench.stack import Stack, running

# The demonstration runs for this many seconds before its memory is measured.
DEMO_S = 30.0
BASELINE_S = 4.0


class Runner:
    """Measures scenarios, and collects what it measures in a report.

    Parameters
    ----------
    names : sequence of str
        Of the scenarios.
    seconds : float
        How long each is measured.
    scale : float
        The part of its objects, queries and clients that a scenario has.
    say : function of a text
        Tells of progress.

    Attributes
    ----------
    report : Report
    """

    def __init__(self, names: Sequence[str], seconds: float, scale: float, say: Callable[[str], None]) -> None:
        self.names, self.seconds, self.scale, self.say = names, seconds, scale, say
        self.report = Report(machine())

    def run(self) -> Report:
        """Measure everything."""
        if "baselines" in self.names:
            self._baselines()
        self._tile38()
        self._rows()
        self._frames()
        self._cases()
        self._joins()
        self._place()
        if "demo" in self.names:
            self._demo()
        return self.report

    @contextmanager
    def _watching(self, name: str) -> Iterator[None]:
        """Say that a scenario begins, and record its conditions; if it fails, record why and go on."""
        self.say(f"{name} ...")
        try:
            with watched() as self.report.conditions[name]:
                yield
        except Exception as failed:  # whatever one scenario dies of, the others are measured
            self.report.failed[name] = f"{type(failed).__name__}: {failed}"
            self.say(f"{name} failed: {str(failed)[-300:]}")

    def _chosen(self, scenarios):
        return [scenario for name, scenario in scenarios.items() if name in self.names]

    def _on_stacks(
        self,
        scenarios: Sequence[Any],
        start: Callable[[Any], AbstractContextManager[Stack]],
        take: Callable[[Stack, Any], None],
    ) -> None:
        """Measure each scenario on the stack that it shares with its neighbours; a failure costs a new stack."""
        for _, group in groupby(scenarios, key=lambda scenario: scenario.stack):
            with ExitStack() as held:
                stack: Stack | None = None
                for scenario in group:
                    with self._watching(scenario.name):
                        if stack is None:
                            stack = held.enter_context(start(scenario))
                        take(stack, scenario)
                    if scenario.name in self.report.failed:
                        held.close()
                        stack = None

    def _rows(self):
        def take(stack, scenario):
            self.report.rows.append(measure(stack, scenario, self.seconds))

        chosen = [scaled(scenario, self.scale) for scenario in self._chosen(SCENARIOS)]
        self._on_stacks(chosen, lambda scenario: running(scenario.queries, scenario.wire), take)

    def _cases(self):
        def take(stack, case):
            module = importlib.import_module(f"bench.{case.what}")
            figures = module.measure(stack, case, self.seconds)
            self.report.measured.append(Measured(case.name, case.what, figures))

        chosen = [scaled(case, self.scale) for case in self._chosen(CASES)]
        self._on_stacks(chosen, lambda case: running(case.queries, each=case.each), take)

    def _frames(self):
        names = [name for name in FRAMES if name in self.names]
        if not names:
            return
        with self._watching("frames"), running(100) as stack:
            for name in names:
                with self._watching(name):
                    self.report.frames.append(frames.measure(stack, FRAMES[name], self.seconds))
        del self.report.conditions["frames"]

    def _joins(self):
        """Measure joins, and, before each stack, GeoPandas for comparison."""

        def start(scenario):
            self.report.naive.append(joins.naive(scenario, min(self.seconds, BASELINE_S)))
            return running(scenario.joins, joins=scenario.name)

        def take(stack, scenario):
            self.report.joins.append(joins.measure(stack, scenario, self.seconds))

        self._on_stacks(self._chosen(JOINS), start, take)

    def _baselines(self):
        with self._watching("baselines"):
            self.report.baselines = baselines.measure(min(self.seconds, BASELINE_S))

    def _tile38(self):
        if TILE38 not in self.names:
            return
        try:
            tile38.program()
        except tile38.Missing as missing:
            self.report.missing = str(missing)
            self.say(f"{TILE38}: {missing}")
            return
        with self._watching(TILE38):
            small = scaled(SCENARIOS["20k-100q-100k"], self.scale)
            self.report.tile38 = tile38.measure(small.queries, small.objects, self.seconds)

    def _place(self):
        for name, queries in PLACE.items():
            if name in self.names:
                with self._watching(name):
                    row, workload = share_of(queries, self.scale, self.seconds)
                    self.report.measured.append(Measured(name, "place", share_figures(row, workload)))

    def _demo(self):
        """Run the demonstration's streams, and take the memory of each program."""
        with self._watching("demo"), running(None) as stack:
            time.sleep(min(DEMO_S, 2 * self.seconds))
            self.report.demo_mib = pss_mib(stack.home)
