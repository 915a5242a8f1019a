"""The archive of Java's classes: one engine makes it, the next ones use it, and engines start without it."""

import os
import subprocess
from pathlib import Path

import pytest

from bench.live import wait_for
from streaming.engine.class_archive import ClassArchive
from streaming.engine.java import java_home


@pytest.fixture(scope="module")
def java(tmp_path_factory):
    return java_home(os.environ.get("JAVA_HOME", ""), tmp_path_factory.mktemp("java"))


def run(java, archive, *options):
    """Run a small Java program with what the archive asks for; return what Java tells of its classes."""
    option = archive.options.strip('"')
    done = subprocess.run([java / "bin" / "java", option, *options, "-version"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_first_engine_makes_the_archive_and_the_next_one_starts_with_it(java, tmp_path):
    first, folder = ClassArchive(java, tmp_path / "a", tmp_path / "archives"), tmp_path / "archives"
    run(java, first)
    second = ClassArchive(java, tmp_path / "b", folder)
    run(java, second)
    first.make(lambda: str(tmp_path))
    second.make(lambda: pytest.fail("two engines make the same archive"))

    def made():
        first.make(lambda: pytest.fail("made twice"))
        return list(folder.glob("*.jsa"))

    (archive,) = wait_for(made, "the archive")
    assert archive.stat().st_size > 1_000_000
    next_one = ClassArchive(java, tmp_path / "c", folder)
    assert str(archive) in next_one.options
    assert "source: shared objects file" in run(java, next_one, "-Xlog:class+load")
    assert not list(folder.glob("*.draft"))
    second.make(lambda: pytest.fail("made twice"))
    next_one.make(lambda: pytest.fail("made twice"))


def test_an_archive_that_is_broken_or_of_another_java_does_not_keep_java_from_starting(java, tmp_path):
    archive = ClassArchive(java, tmp_path, tmp_path)
    path = Path(archive.options.partition("=")[2].strip('"')).with_name("classes.jsa")
    path.write_bytes(b"\0" * 10_000)
    subprocess.run([java / "bin" / "java", f"-XX:SharedArchiveFile={path}", "-version"], check=True)


def test_where_no_archive_can_be_written_engines_start_without_one(java, tmp_path, caplog):
    blocked = tmp_path / "a file"
    blocked.touch()
    archive = ClassArchive(java, tmp_path, blocked)
    run(java, archive)
    with caplog.at_level("INFO"):
        archive.make(lambda: pytest.fail("no place"))
        archive.make(lambda: pytest.fail("no place"))
    assert caplog.text.count("starts take longer") == 1


def test_another_spark_has_another_archive(java, tmp_path, monkeypatch):
    folder = tmp_path / "archives"
    folder.mkdir()
    here = ClassArchive(java, tmp_path, folder)
    monkeypatch.setattr("pyspark.__version__", "99.0")
    assert ClassArchive(java, tmp_path, folder)._archive != here._archive
