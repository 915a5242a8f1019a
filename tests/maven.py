"""Programs of Java from Maven Central, fetched once for a user."""

import os
import subprocess
import urllib.request
from pathlib import Path

import pyspark
import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookout"
IVY = next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
PATIENCE_S = 300


def jars(java: Path, group: str, artifact: str, version: str) -> Path:
    """Return the folder of a program's jars, and of all that it needs; fetch them the first time.

    The test is skipped where they are not there and Maven Central is not reached.
    """
    folder = CACHE / f"{artifact}-{version}"
    if not (folder / "whole").exists():
        pom = f"https://repo1.maven.org/maven2/{group.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.pom"
        try:
            urllib.request.urlopen(pom, timeout=10).close()
        except OSError as error:
            pytest.skip(f"the jars of {artifact} {version} are not in {folder}, and {pom} is not reached: {error}")
        wanted = ["-dependency", group, artifact, version, "-confs", "default"]
        target = ["-cache", str(folder / "ivy"), "-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
        subprocess.run([java, "-jar", IVY, *wanted, *target], check=True, capture_output=True, timeout=PATIENCE_S)
        (folder / "whole").touch()
    return folder / "jars"
