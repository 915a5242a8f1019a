"""Decoders and transports of other packages."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from streaming.decoders import registry
from streaming.gateway import transports
from streaming.sketch.inference import registry as models
from streaming.udf import registry as filters

ROOT = Path(__file__).parents[2]

ACME = """
from streaming.decoders.ais import AisDecoder
from streaming.gateway.transports.base import LiveTransport

class Decoder(AisDecoder):
    pass

class Transport(LiveTransport):
    def __init__(self, definition):
        self.definition = definition
"""
ENTRY_POINTS = """
[lookout.decoders]
acme_ais = acme:Decoder
ais = acme:Decoder
[lookout.transports]
acme_radio = acme:Transport
file = acme:Transport
"""
USE = """
from streaming.decoders import decoder_kinds, make_decoder
from streaming.gateway.transports import make_transport, transport_kinds

for name, make, kinds in (
    ("decoder", lambda kind: make_decoder({"kind": kind}, "s"), decoder_kinds()),
    ("transport", lambda kind: make_transport({"kind": kind, "path": "feeds/x"}), transport_kinds()),
):
    for kind in ("acme_ais", "ais", "acme_radio", "file"):
        if kind in kinds:
            made = make(kind)
            print(name, kind, type(getattr(made, "inner", made)).__module__)
"""


@pytest.fixture
def acme(tmp_path):
    """Return a folder with a package as it lies there once it is installed."""
    (tmp_path / "acme.py").write_text(ACME)
    metadata = tmp_path / "acme-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def test_an_installed_package_adds_kinds_and_replaces_none(acme):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(acme)])}
    run = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == [
        "decoder acme_ais acme",
        "decoder ais streaming.decoders.ais",
        "transport acme_radio acme",
        "transport file streaming.gateway.transports.file",
    ]


@pytest.mark.parametrize("part", [registry, transports, filters, models])
def test_the_kinds_that_are_built_in_are_declared_as_entry_points(part):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][part.GROUP] == part.BUILT_IN
