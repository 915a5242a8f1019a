"""Print what share of the Python code the tests reach, by room, and hold it against the floor in pyproject.toml.

``python tools/coverage.py build/coverage/all.json`` reads what slipcover has written, of several runs if there are more
files. It exits with 1 if lines or branches are below the floor, and says so if the floor may rise. What is in Java's or
Spark's processes, and in programs that tests start, does not count.
"""

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("lines", "branches")
# A floor that lies this many points below what was reached may rise.
SLACK = 0.5


def places(found: dict, how: str, kind: str) -> set:
    """Return the lines or branches of a file that were executed, or are missing."""
    return {tuple(place) if kind == "branches" else place for place in found[f"{how}_{kind}"]}


def counts(runs: list[dict]) -> dict[str, Counter]:
    """Return how many lines and branches of each room any run reached, and all missed: of each folder of a package."""
    rooms: dict[str, Counter] = {}
    for name in {name for files in runs for name in files}:
        path = Path(name)
        path = path.relative_to(ROOT) if path.is_absolute() else path
        counter = rooms.setdefault("/".join(path.parts[: min(2, len(path.parts) - 1)]), Counter())
        seen = [files[name] for files in runs if name in files]
        for kind in KINDS:
            executed = set().union(*(places(found, "executed", kind) for found in seen))
            missing = set().union(*(places(found, "missing", kind) for found in seen)) - executed
            counter[kind, True] += len(executed)
            counter[kind, False] += len(missing)
    return rooms


def share(counter: Counter, kind: str) -> float:
    """Return the share that was reached, in percent; all of nothing is 100."""
    total = counter[kind, True] + counter[kind, False]
    return 100.0 * counter[kind, True] / total if total else 100.0


def main(*paths: str) -> int:
    """Print the table; return the exit code."""
    rooms = counts([json.loads(Path(path).read_text())["files"] for path in paths])
    whole = sum(rooms.values(), Counter())
    for room, counter in [*sorted(rooms.items()), ("all", whole)]:
        print(f"{room:32}" + "".join(f"{share(counter, kind):7.1f} % of {kind:9}" for kind in KINDS))
    floor = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["lookout"]["coverage"]
    below = [kind for kind in KINDS if share(whole, kind) < floor[kind]]
    for kind in below:
        print(f"{kind}: {share(whole, kind):.2f} % is below the floor of {floor[kind]} % (pyproject.toml)")
    for kind in KINDS:
        if share(whole, kind) > floor[kind] + SLACK:
            print(f"{kind}: the floor of {floor[kind]} % may rise to {share(whole, kind) - SLACK / 2:.1f} %")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
