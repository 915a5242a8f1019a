"""A server of S3 on loopback that keeps its objects in a folder: s3proxy, from Maven Central."""

import os
import subprocess
import uuid

import pytest

from bench.live import wait_for
from bench.ports import free_port
from streaming.engine.java import java_home
from streaming.state.stores import RemoteStore
from tests.maven import jars

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


@pytest.fixture(scope="session")
def s3_url(tmp_path_factory):
    """Run the server, with a bucket; yield its address."""
    folder, url = tmp_path_factory.mktemp("s3"), f"http://127.0.0.1:{free_port()}"
    java = java_home(os.environ.get("JAVA_HOME", ""), folder) / "bin" / "java"
    classes = f"{jars(java, 'org.gaul', 's3proxy', VERSION)}/*"
    (folder / "objects" / BUCKET).mkdir(parents=True)
    properties = folder / "s3.properties"
    properties.write_text(PROPERTIES.format(identity=IDENTITY, secret=SECRET, url=url, folder=folder))
    command = [java, "-Xmx256m", "-cp", classes, "org.gaul.s3proxy.Main", "--properties", str(properties)]
    log = folder / "s3.log"
    with log.open("ab") as words:
        server = subprocess.Popen(command, stdout=words, stderr=words)
    wait_for(lambda: b"STARTED ogsoejs.Server" in log.read_bytes() or server.poll() is not None, "the server of S3")
    assert server.poll() is None, log.read_text()
    yield url
    server.kill()
    server.wait()


@pytest.fixture
def s3_store(s3_url, monkeypatch) -> RemoteStore:
    """Return a store in a new folder of the bucket, told where it is as operators tell: by the environment."""
    told = {"AWS_ENDPOINT_URL": s3_url, "AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET}
    for name, value in {**told, "AWS_DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(name, value)
    return RemoteStore(f"s3://{BUCKET}/{uuid.uuid4().hex}", skip_instance_cache=True)
