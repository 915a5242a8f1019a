"""How Java writes files: without starting a process for each.

Hadoop's own file system starts the program ``chmod`` for each file that it creates, unless Hadoop's native library is
installed. A micro-batch creates two files in the checkpoint, and a checksum for each. The four processes took 12 ms of
a batch.
"""

from typing import Any

from pyspark.sql import SparkSession

CLASS = "LookoutLocalFiles"
# Java. Spark brings the compiler, which it uses for the code that it generates.
_SOURCE = f"""
public class {CLASS} extends org.apache.hadoop.fs.RawLocalFileSystem {{
    public void setPermission(
        org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission
    ) throws java.io.IOException {{
        java.nio.file.Files.setPosixFilePermissions(
            pathToFile(path).toPath(),
            java.nio.file.attribute.PosixFilePermissions.fromString(permission.toString())
        );
    }}
}}
"""


def write_without_processes(spark: SparkSession) -> None:
    """Have a session write local files by a file system that sets their permissions itself, and writes no checksums."""
    java: Any = spark._jvm
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(java.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(_SOURCE)
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.setClassLoader(compiler.getClassLoader())
    hadoop.set("fs.file.impl", CLASS)
    # Otherwise Hadoop goes on with the file system that the start of Spark has made.
    hadoop.setBoolean("fs.file.impl.disable.cache", True)
