"""An archive of Spark's classes, which Java maps into memory instead of parsing them at each start.

Java takes half of an engine's start to read, check and link some 15,000 classes. Class-data sharing keeps the result in
a file. If an engine finds no archive, its Java lists the classes that it loads; after the engine has run for a while,
another Java with low priority makes the archive from this list. An archive fits one Java and one Spark, so it lies in
the Python environment in which Spark is installed.

Java itself checks whether an archive fits, and ignores one that does not.
"""

import hashlib
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pyspark

from streaming.file_lock import try_lock

logger = logging.getLogger("lookout.engine")

FOLDER = Path(sys.prefix) / "share" / "lookout"
NICENESS = 10


class ClassArchive:
    """The class archive for one Java, which is made if it is missing.

    Parameters
    ----------
    java_home : Path
    scratch : Path
        A folder that only this engine uses, for the list of the classes that its Java loads.
    folder : Path
        The folder of the archives. If it is not writable, no archive is made, and Java starts more slowly.
    """

    def __init__(self, java_home: Path, scratch: Path, folder: Path = FOLDER) -> None:
        self._java = java_home / "bin" / "java"
        self._archive = folder / f"classes-{_identity(self._java)}.jsa"
        self._draft = self._archive.with_suffix(".draft")
        self._list = scratch / "classes.list"
        self._maker: subprocess.Popen | None = None
        self._done = self._archive.exists()

    @property
    def options(self) -> str:
        """The options to start Java with: use the archive, or list the classes if there is none."""
        if self._done:
            return f'"-XX:SharedArchiveFile={self._archive}"'
        self._list.parent.mkdir(parents=True, exist_ok=True)
        return f'"-XX:DumpLoadedClassList={self._list}"'

    def make(self, class_path: Callable[[], str]) -> None:
        """Take the next step of making the archive, if there is one. Call this now and then.

        Parameters
        ----------
        class_path : function without parameters
            Returns the class path of the Java that was started with `options`.
        """
        if self._done:
            return
        try:
            if self._maker is None:
                self._begin(class_path)
            elif self._maker.poll() is not None:
                self._done = True
                self._end(self._maker.returncode)
        except OSError as error:
            self._done = True
            logger.warning("no archive of Java's classes, so starts take longer: %s", error)

    def _begin(self, class_path: Callable[[], str]) -> None:
        """Start the Java that makes the archive, unless another engine is making it."""
        # The engine's Java goes on writing the list, so the last line may be incomplete.
        classes = self._list.read_text().rpartition("\n")[0]
        complete = self._list.with_suffix(".complete")
        complete.write_text(f"{classes}\n")
        self._archive.parent.mkdir(parents=True, exist_ok=True)
        with self._archive.with_suffix(".lock").open("ab") as lock:
            if not try_lock(lock):
                return
            if self._archive.exists():
                self._done = True
                return
            self._maker = subprocess.Popen(
                [
                    self._java,
                    "-Xshare:dump",
                    f"-XX:SharedClassListFile={complete}",
                    f"-XX:SharedArchiveFile={self._draft}",
                    "-Xlog:disable",
                    "-Xlog:all=error:stderr",
                    "-XX:+UseSerialGC",
                    "-cp",
                    class_path(),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # The new process holds the lock until it ends.
                pass_fds=[lock.fileno()],
            )
            psutil.Process(self._maker.pid).nice(NICENESS)

    def _end(self, code: int) -> None:
        if code:
            raise OSError(f"Java ended with exit code {code}")
        for other in self._archive.parent.glob("classes-*.jsa"):
            other.unlink(missing_ok=True)  # for an earlier Java or Spark
        self._draft.replace(self._archive)
        logger.info("Java's classes are archived: %s", self._archive)


def _identity(java: Path) -> str:
    """Return a hash that differs for each Java and each Spark."""
    release = java.resolve().parents[1] / "release"
    spark = Path(pyspark.__file__).parent
    known = [
        str(java),
        java.read_bytes(),
        release.read_bytes() if release.exists() else "",
        str(spark),
        pyspark.__version__,
        (spark / "jars").stat().st_mtime_ns,
    ]
    return hashlib.sha256(repr(known).encode()).hexdigest()[:16]
