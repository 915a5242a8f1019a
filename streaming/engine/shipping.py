"""Pack Lookout's code for the machines of a cluster, so that all run the same release."""

import zipfile
from pathlib import Path

from streaming.state.files import whole

PACKAGE = Path(__file__).parents[1]
# An executor finds it in the folder in which it runs.
ARCHIVE = "lookout.zip"


def packed(folder: Path) -> Path:
    """Write the package as a zip file into a folder, and return its path.

    What it needs of other packages has to be installed on each machine.
    """
    path = folder / ARCHIVE
    with whole(path, durable=False) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(PACKAGE.rglob("*.py")):
            archive.write(file, file.relative_to(PACKAGE.parent))
    return path
