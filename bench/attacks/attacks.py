"""The list of all attacks."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from bench.attacks import by_http, by_socket
from bench.attacks.by_chance import by_chance
from bench.attacks.doors import Attacker


@dataclass(frozen=True)
class Attack:
    """One attack.

    Parameters
    ----------
    run : callable
        What the attackers do, until it is cancelled.
    ships : int
        How many ships there are, and as many tugs.
    replay : {"", "once", "loop"}
        Whether a recording is replayed at full speed meanwhile.
    seconds : float or None
        How long it lasts unless something else is asked for; None: as the others.
    """

    run: Callable[[Attacker], Awaitable[None]]
    ships: int = 3_000
    replay: str = ""
    seconds: float | None = None


ATTACKS: Mapping[str, Attack] = {
    "joins-400": Attack(by_socket.joins, ships=400),
    "joins-3000": Attack(by_socket.joins),
    "table-join": Attack(by_socket.table_join),
    "window-join": Attack(by_socket.window_join, replay="loop"),
    "corridors": Attack(by_socket.corridors),
    "neighbours": Attack(by_socket.neighbours),
    "readers": Attack(by_socket.readers),
    "deaf": Attack(by_socket.deaf),
    "backtests": Attack(by_socket.backtests),
    "replays": Attack(by_http.replays),
    "reports": Attack(by_http.reports),
    "uploads": Attack(by_http.uploads),
    "burst": Attack(by_socket.burst, replay="once"),
    "random": Attack(by_chance, seconds=600.0),
}
