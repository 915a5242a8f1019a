"""Attack a Lookout as users with ordinary rights can, and tell what another user notices."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

from bench.attacks.attacks import ATTACKS
from bench.attacks.measure import AROUND_S, measure
from bench.attacks.outcome import Outcome, report
from bench.live import ROOT
from bench.machine import machine

SECONDS = 180.0
RECORDING = Path(os.environ.get("LOOKOUT_RECORDINGS", ROOT.parent / "shared" / "data")) / "ais" / "ais-sample.txt.gz"


def main() -> int:
    """Print a line for each attack, and write the figures as JSON; return 1 if a promise was not kept."""
    arguments = _arguments()
    # After SIGTERM, too, end everything that was started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    described, began_s = machine(), time.monotonic()
    recording = arguments.recording if arguments.recording.is_file() else None
    outcomes = []
    for name in arguments.only or ATTACKS:
        seconds = arguments.seconds or ATTACKS[name].seconds or SECONDS
        if ATTACKS[name].replay and recording is None:
            outcome = Outcome(name, failed=f"the recording must be a file; got {arguments.recording}")
        else:
            outcome = measure(name, seconds, arguments.around, recording)
        outcomes.append(outcome)
        verdict = ", ".join(outcome.broken) or "kept"
        print(f"{time.monotonic() - began_s:6.0f} s  {name}: {verdict}", file=sys.stderr, flush=True)
        told = {"machine": described, "attacks": [outcome.document for outcome in outcomes]}
        arguments.json.write_text(json.dumps(told, indent=1) + "\n")
    print(f"{described}\n\n{report(outcomes)}")
    return int(any(outcome.broken for outcome in outcomes))


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in ATTACKS]:
        raise argparse.ArgumentTypeError(f"attacks are {', '.join(ATTACKS)}; got {', '.join(unknown)}")
    return names


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m bench.attacks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", type=_names, metavar="NAMES", help=f"with commas between them: {', '.join(ATTACKS)}")
    parser.add_argument("--seconds", type=float, help=f"that each attack lasts ({SECONDS:g}; random: 600)")
    parser.add_argument("--around", type=float, default=AROUND_S, help=f"measured before and after ({AROUND_S:g})")
    parser.add_argument("--recording", type=Path, default=RECORDING, help="of AIS, to be replayed (%(default)s)")
    parser.add_argument("--json", type=Path, default=Path("attacks.json"), help="for the figures (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
