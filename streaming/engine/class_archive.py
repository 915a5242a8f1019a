"""Spark's classes, parsed once and for all, in an archive that Java maps into memory.

Half of an engine's start is Java's reading, checking and linking of some 15,000 classes. Class-data sharing keeps the
result in a file. An engine that finds no archive has Java write down which classes it loads; once it has run for a
while, another Java of low priority makes the archive of them. The archive belongs to one Java and one Spark, so
it lies in the Python environment in which Spark is installed.

Java checks by itself whether an archive fits, and does without one that does not.
"""

import contextlib
import fcntl
import hashlib
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pyspark

logger = logging.getLogger("lookout.engine")

FOLDER = Path(sys.prefix) / "share" / "lookout"
NICENESS = 10


class ClassArchive:
    """The archive for one Java, and the making of it.

    Parameters
    ----------
    java_home : Path
    scratch : Path
        A folder of this engine alone, for the list of the classes that its Java loads.
    folder : Path
        Of the archives. Where it cannot be written there are none, and Java starts more slowly.
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
        """The options with which Java is to be started."""
        if self._done:
            return f'"-XX:SharedArchiveFile={self._archive}"'
        self._list.parent.mkdir(parents=True, exist_ok=True)
        return f'"-XX:DumpLoadedClassList={self._list}"'

    def make(self, class_path: Callable[[], str]) -> None:
        """Take the next step towards the archive, if there is one to take: to be called every now and then.

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

    def _begin(self, class_path):
        """Start the Java that makes the archive, unless another engine's is at it."""
        # The Java that loads them goes on writing the list: its last line may be half a line.
        classes = self._list.read_text().rpartition("\n")[0]
        complete = self._list.with_suffix(".complete")
        complete.write_text(f"{classes}\n")
        self._archive.parent.mkdir(parents=True, exist_ok=True)
        with self._archive.with_suffix(".lock").open("ab") as lock, contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
                # It holds the lock until it ends.
                pass_fds=[lock.fileno()],
            )
            psutil.Process(self._maker.pid).nice(NICENESS)

    def _end(self, code):
        if code:
            raise OSError(f"Java ended with exit code {code}")
        for other in self._archive.parent.glob("classes-*.jsa"):
            other.unlink(missing_ok=True)  # of a Java or a Spark that was here before
        self._draft.replace(self._archive)
        logger.info("Java's classes are archived: %s", self._archive)


def _identity(java):
    """Return a text that is another one for another Java or Spark."""
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
