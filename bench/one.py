"""Measure one scenario on a stack of its own, and print its figures as JSON.

The scenario comes as JSON, too: ``{"kind": "Scenario" or "Case", "fields": {...}}``. So this module also runs inside
the benchmark of another version of Lookout, which may not have the scenario. It needs nothing but `Scenario`, `running`
and `measure` there; for a case, the module that measures it.
"""

import argparse
import importlib
import json

from bench import scenarios
from bench.measure import Row, measure
from bench.stack import running


def figures_of(document: dict, seconds: float) -> dict[str, float | None]:
    """Measure a scenario for `seconds`, and return its figures by name."""
    scenario = getattr(scenarios, document["kind"])(**document["fields"])
    if document["kind"] == "Scenario":
        with running(scenario.queries, scenario.wire) as stack:
            return row_figures(measure(stack, scenario, seconds))
    case = importlib.import_module(f"bench.{scenario.what}")
    with running(scenario.queries, each=scenario.each) as stack:
        return case.measure(stack, scenario, seconds)


def row_figures(row: Row) -> dict[str, float | None]:
    """Return the figures of a row by name."""
    return {
        "elements/s": row.work.elements_per_s,
        "batches/s": row.work.batches_per_s,
        "p50 ms": row.latency["p50_ms"],
        "p99 ms": row.latency["p99_ms"],
        "engine cores": row.cores.get("engine"),
        "engine us/element": row.engine_cpu_us,
        "memory MiB": sum(row.memory_mib.values()),
    }


def main() -> None:
    """Print the figures as JSON, on the last line."""
    parser = argparse.ArgumentParser(prog="python -m bench.one", description=main.__doc__)
    parser.add_argument("scenario", type=json.loads)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    print(json.dumps(figures_of(arguments.scenario, arguments.seconds)))


if __name__ == "__main__":
    main()
