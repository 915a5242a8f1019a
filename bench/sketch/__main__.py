"""Print figures of the sketch: ``python -m bench.sketch``, or a part of them with ``--part``."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from bench.sketch import against_duckdb, beside, coverage, quantisation, through, times, year
from bench.sketch.recordings import RECORDINGS
from streaming.sketch.settings import DAY_US

QUESTIONS = 10_000


def _bounds(options) -> Iterator[str]:
    yield "| recording | question | asked | bounds hold | median width | median error | error of 95 % |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in options.recordings:
        recording = RECORDINGS[name]()
        yield from coverage.rows_of(recording, coverage.coverage(recording, options.questions, options.confidence))


def _bins(options) -> Iterator[str]:
    yield "| recording | bins | leaves | vertices | MB | less | within 0.5 % | error of 80 % | worst bin |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for name, planes in (("beijing", ("TEMP", "DEWP")), ("globe", ("u", "level"))):
        recording = RECORDINGS[name]()
        recording = replace(recording, settings=replace(recording.settings, time_bin_us=30 * DAY_US))
        yield from quantisation.rows_of(recording, planes)
        yield quantisation.orders(recording, planes)


def _budget(options) -> Iterator[str]:
    yield "| recording | feature | error budget | values that keep it | most bins | made | leaves | MB |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for name in options.recordings:
        recording = RECORDINGS[name]()
        for feature in quantisation.BUDGETED[name]:
            for error in (quantisation.USUAL_ERROR, 4 * quantisation.USUAL_ERROR):
                yield quantisation.budgeted(recording, feature, error).row(recording.name, feature, error)


def _times(options) -> Iterator[str]:
    sketch = times.paper_sized()
    yield f"{len(sketch):,} leaves, {sketch.nbytes / 1e6:.1f} MB"
    yield "| question | median ms | mean ms | deviation | paper, mean ms |"
    yield "| --- | --- | --- | --- | --- |"
    yield from times.rows_of(sketch)


def _year(options) -> Iterator[str]:
    yield "| elements | MB given | quarter 1, MB of sketch, process | 2 | 3 | 4 | given / most | elements/s of a core |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    yield from year.year(options.days).rows()
    for comoments in (False, True):
        told = "with all co-moments" if comoments else "without co-moments"
        yield f"8 features, {told}: {year.ingest(comoments=comoments):,.0f} elements/s of a core"


def _duckdb(options) -> Iterator[str]:
    yield "| recording | asked of | MB | median ms | 100 questions, s | MB of memory |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name in options.recordings:
        yield from against_duckdb.rows_of(RECORDINGS[name]())


def _beside(options) -> Iterator[str]:
    yield "| elements a batch | elements/s of a task without a sketch | with one of 8 features | ratio |"
    yield "| --- | --- | --- | --- |"
    yield from beside.rows()


def _through(options) -> Iterator[str]:
    yield "| objects | elements/s without a sketch | with one of 8 features | ratio | all ratios | longest batches ms |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield from through.rows()


PARTS = {
    "bounds": _bounds,
    "bins": _bins,
    "budget": _budget,
    "times": _times,
    "year": _year,
    "duckdb": _duckdb,
    "beside": _beside,
    "through": _through,
}


def main(arguments: list[str] | None = None) -> None:
    """Print the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, action="append", help="print only this part; may be repeated")
    parser.add_argument("--recordings", nargs="+", choices=RECORDINGS, default=list(RECORDINGS))
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="random questions of a kind to a recording")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--days", type=int, default=365)
    options = parser.parse_args(arguments)
    for part in options.part or PARTS:
        print(f"\n{part}", flush=True)
        for line in PARTS[part](options):
            print(line, flush=True)


if __name__ == "__main__":
    main()
