"""Back-tests: what queries and rules would have told of the elements that are stored.

The elements are played through the servers of the engine (`streaming.servers`) in the order in which they were heard,
while a clock follows them. There is no second implementation of any query. docs/backtest.md says what is equal to a
live engine, and what may differ.

To know what queries would have told, micro-batch by micro-batch::

    asked = BacktestRequest(
        {7: plan_of_7, 8: plan_of_a_rule_over_7},  # JSON documents, by the numbers under which results are told
        span=(begin_us, end_us),  # the times at which elements were heard, in microseconds since 1970 UTC
        ttl_s={"ships": 600.0},
    )
    playing = Playing(asked, layers=Path("var/layers"))
    for played in playing.play(StoredElements(History(Path("var/history"), EARTH), asked)):
        played.time_us, played.rows  # the clock, and result tuples with `results.result_schema`, netted
        playing.share, playing.elements  # how far it has come
    playing.stopped  # which limit has ended it; empty if none has

The first `PlayedBatch` has the objects that are in the answers when the span begins, with the reason ``registered``.
So the answer at any time is made of the tuples up to then, as a client makes it. `QuerySummary` makes of them who was
in an answer from when to when. Elements may come from anywhere: `Playing.play` takes any iterable of tables with
`tracked_schema`.
"""

from streaming.backtest.asked import BacktestLimits, BacktestRequest, streams_of
from streaming.backtest.errors import InvalidBacktest
from streaming.backtest.play import PlayedBatch, Playing
from streaming.backtest.reading import StoredElements
from streaming.backtest.summary import AnswerSpans, QuerySummary

__all__ = [
    "AnswerSpans",
    "BacktestLimits",
    "BacktestRequest",
    "InvalidBacktest",
    "PlayedBatch",
    "Playing",
    "QuerySummary",
    "StoredElements",
    "streams_of",
]
