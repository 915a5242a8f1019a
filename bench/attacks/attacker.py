"""The process of the attackers: it attacks for some time, cancels its queries, and tells what it counted."""

import argparse
import asyncio
import contextlib
import json

from bench.attacks.attacks import ATTACKS, Attack
from bench.attacks.doors import Attacker


async def attack(attacker: Attacker, chosen: Attack) -> dict[str, int]:
    """Attack until the time is over, and return what was counted."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(attacker.seconds):
            await attacker.bounded(chosen.run(attacker))
            # Who was thrown out has still the time of the attack.
            await asyncio.Event().wait()
    await attacker.leave()
    return dict(attacker.tally)


def main() -> None:
    """Read who attacks from standard input; print the counters as JSON."""
    parser = argparse.ArgumentParser(prog="python -m bench.attacks.attacker", description=main.__doc__)
    parser.add_argument("attack", choices=ATTACKS)
    parser.add_argument("--seconds", type=float, required=True)
    arguments = parser.parse_args()
    attacker = Attacker(**json.loads(input()), seconds=arguments.seconds)
    print(json.dumps(asyncio.run(attack(attacker, ATTACKS[arguments.attack]))))


if __name__ == "__main__":
    main()
