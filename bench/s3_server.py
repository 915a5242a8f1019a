"""A server of S3 on loopback that keeps its objects in a folder: s3proxy, from Maven Central."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from bench.live import StackFailed, wait_for
from bench.maven import alone
from bench.ports import answers, free_port
from streaming.engine.java import java_home

VERSION = "4.1.0"
IDENTITY, SECRET, BUCKET = "lookout", "a secret of the tests", "states"
PROPERTIES = """
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={identity}
s3proxy.credential={secret}
s3proxy.endpoint={url}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={folder}/objects
"""


@contextlib.contextmanager
def s3_server(folder: Path) -> Iterator[dict[str, str]]:
    """Run the server, with an empty bucket, `BUCKET`; yield the environment that tells programs of it.

    Raises
    ------
    NotReached
        If its jars are not there and Maven Central is not reached.
    """
    port, log = free_port(), folder / "s3.log"
    url = f"http://127.0.0.1:{port}"
    java = java_home(os.environ.get("JAVA_HOME", ""), folder) / "bin" / "java"
    program = alone("org.gaul", "s3proxy", VERSION)
    (folder / "objects" / BUCKET).mkdir(parents=True)
    properties = folder / "s3.properties"
    properties.write_text(PROPERTIES.format(identity=IDENTITY, secret=SECRET, url=url, folder=folder))
    command = [java, "-Xmx256m", "-jar", str(program), "--properties", str(properties)]
    with log.open("ab") as words:
        server = subprocess.Popen(command, stdout=words, stderr=words)
    try:
        wait_for(lambda: answers(port) or server.poll() is not None, "the server of S3")
        if server.poll() is not None:
            raise StackFailed(log.read_text())
        names = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET}
        yield names | {"AWS_DEFAULT_REGION": "us-east-1"}
    finally:
        server.kill()
        server.wait()
