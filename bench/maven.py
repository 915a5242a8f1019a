"""Programs of Java from Maven Central, fetched once for a user."""

import os
import shutil
import subprocess
import urllib.request
from pathlib import Path

import pyspark

from streaming.state.files import whole

CENTRAL = "https://repo1.maven.org/maven2"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookout"
IVY = next(Path(pyspark.__file__).parent.glob("jars/ivy-*.jar"))
# Of hundreds of files, one may fail. What is fetched is not fetched again.
TRIES, PATIENCE_S = 4, 300


class NotReached(Exception):
    """A program is not there, and Maven Central is not reached."""


def with_dependencies(java: Path, group: str, artifact: str, version: str) -> Path:
    """Return the folder of a program's jars, and of all that it needs; fetch them the first time.

    Raises
    ------
    NotReached
        If they are not there and cannot be fetched.
    """
    folder = CACHE / f"{artifact}-{version}"
    wanted = ["-dependency", group, artifact, version, "-confs", "default"]
    target = ["-cache", str(folder / "ivy"), "-retrieve", f"{folder}/jars/[artifact]-[revision].[ext]"]
    for _ in range(TRIES):
        if (folder / "whole").exists():
            return folder / "jars"
        done = subprocess.run([java, "-jar", IVY, *wanted, *target], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode == 0:
            (folder / "whole").touch()
    raise NotReached(f"the jars of {artifact} {version} must be in {folder}, or come from Maven Central: {done.stdout}")


def alone(group: str, artifact: str, version: str) -> Path:
    """Return the one jar that holds a program and all that it needs; fetch it the first time.

    Raises
    ------
    NotReached
        If it is not there and cannot be fetched.
    """
    name = f"{artifact}-{version}-jar-with-dependencies.jar"
    jar, url = CACHE / name, f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
    if jar.exists():
        return jar
    try:
        with (
            urllib.request.urlopen(url, timeout=PATIENCE_S) as content,
            whole(jar) as temporary,
            temporary.open("wb") as file,
        ):
            shutil.copyfileobj(content, file)
    except OSError as error:
        raise NotReached(f"{jar} must exist, or come from {url}: {error}") from error
    return jar
