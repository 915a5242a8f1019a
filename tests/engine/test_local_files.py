"""The files that Java writes."""

import stat

import pytest


@pytest.mark.spark
def test_java_sets_the_permissions_of_a_file_itself_and_writes_nothing_beside_it(spark, tmp_path):
    path = spark._jvm.org.apache.hadoop.fs.Path(f"file:{tmp_path}/sub/entry")
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == "LookoutLocalFiles"
    stream = files.create(path, True)
    stream.write(65)
    stream.close()
    assert [entry.name for entry in (tmp_path / "sub").iterdir()] == ["entry"]
    assert (tmp_path / "sub" / "entry").read_bytes() == b"A"
    assert stat.S_IMODE((tmp_path / "sub" / "entry").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "sub").stat().st_mode) == 0o700
