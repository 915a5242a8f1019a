"""Runs of pytest that tests start: in a process of its own, which takes nothing over from the run it is started in."""

import os
import subprocess
import sys
from pathlib import Path

# A worker's name, options, the part of the seeds, and what switches coverage on in workers: for the outer run alone.
OURS = ("PYTEST", "SLIPCOVER", "LOOKOUT_SEEDS")


def run_pytest(
    *options: str | Path, folder: Path = Path(__file__).parents[2], **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run pytest in one process, and wait for its end.

    Parameters
    ----------
    *options : str or Path
        What stands on its command line.
    folder : Path
        Where it runs; by default, in the project's folder.
    **environment : str
        Variables of the environment besides those of this process.

    Returns
    -------
    CompletedProcess
        With what it printed as ``stdout``, both kinds in one.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    return subprocess.run(
        command, cwd=folder, env=kept | environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
