"""How the state of a home server is stored: its entries as sorted runs, the reports that it holds, and tracks."""

from collections.abc import Iterable, Mapping
from typing import Any

from streaming.operators.encounters import Ordering
from streaming.operators.watermarks import Progress
from streaming.servers.control.border import left_out_of_rows, left_out_rows
from streaming.servers.home import Home, no_columns
from streaming.servers.report_queue import ReportQueue, waiting_schema
from streaming.servers.runs_codec import first_number, heads_of, parts_of, table_of
from streaming.servers.ways.encounters.ordering import Ordered, Orderings, no_last
from streaming.servers.ways.tracks.fixes import no_fixes
from streaming.servers.ways.tracks.state import Tracking, no_members
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, Tables, head_of, with_head


def home_codec(space: Space) -> Codec:
    """Return the codec of `Home` in a space."""

    def decode(parts: Parts) -> Home:
        table, *_ = parts[HEAD].tables()
        head = head_of(table)
        progress = {stream: Progress(*told) for stream, *told in head.get("progress", ())}
        entries = table_of("entries", no_columns(), head, parts)
        orderings = _orderings(head.get("orderings", ()), head, parts, space)
        tracking = _tracking(head, parts, space) if "tracking" in head else None
        return Home(entries, head["now_us"], head["forgotten_us"], progress, orderings, tracking)

    return Codec(lambda batch: Home.empty(first_number(batch)), _encode, decode)


def _encode(home: Home) -> Parts:
    orderings, names = home.orderings, {name: _name(name) for name in home.orderings.ordered}
    last = {f"last-{names[name]}": known.last for name, known in orderings.ordered.items()}
    tables = {"entries": home.entries} | last
    if home.tracking is not None:
        tables |= {"fixes": home.tracking.fixes, "members": home.tracking.members}
    progress = [[stream, *told] for stream, told in home.progress.items()]
    held = [
        [*name, known.queue.head(), *known.progress[:2], known.since_us, known.forgotten_us]
        for name, known in orderings.ordered.items()
    ]
    head = heads_of(tables) | {"now_us": home.now_us, "forgotten_us": home.forgotten_us, "progress": progress}
    head |= {"orderings": held, "turn": orderings.turn, "following": orderings.following}
    queues = (known.queue.parts(f"held-{names[name]}") for name, known in orderings.ordered.items())
    parts = parts_of(tables)
    for queue in queues:
        parts |= queue
    told = []
    if home.tracking is not None:
        head["tracking"], told = left_out_rows(home.tracking.left_out), [home.tracking.waiting]
    return {HEAD: Tables([with_head(NOTHING, head), *told])} | parts


def _tracking(head: Mapping[str, Any], parts: Parts, space: Space) -> Tracking:
    _, waiting = parts[HEAD].tables()
    fixes, members = (
        table_of("fixes", no_fixes(space), head, parts),
        table_of("members", no_members(space), head, parts),
    )
    return Tracking(fixes, members, waiting, left_out_of_rows(head["tracking"]))


def _orderings(held: Iterable[Any], head: Mapping[str, Any], parts: Parts, space: Space) -> Orderings:
    ordered = {}
    for stream, lateness_us, idle_us, queue, newest_us, heard_us, *times in held:
        ordering = Ordering(stream, lateness_us, idle_us)
        name = _name(ordering)
        ordered[ordering] = Ordered(
            ReportQueue.of_head(waiting_schema(space), f"held-{name}", queue, parts),
            table_of(f"last-{name}", no_last(), head, parts),
            Progress(newest_us, heard_us),
            *times,
        )
    return Orderings(ordered, head.get("turn", 0), head.get("following", 0))


def _name(ordering: Ordering) -> str:
    """Return the name of an ordering in the names of parts, which have no minus signs of numbers."""
    return f"{ordering.stream % 2**64:x}-{ordering.lateness_us}-{ordering.idle_us}"
