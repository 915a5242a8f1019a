"""The files of `deploy/` name only programs, settings and files that exist."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands
from uvicorn.main import main as uvicorn_main

from webapp.live.programs import WEB_OPTIONS

ROOT = Path(__file__).parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
SETTINGS = re.findall(r"^\| `([A-Z_]+)` \|", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
OWN = {name: service for name, service in COMPOSE["services"].items() if service["image"] == "lookout"}


def test_every_part_that_make_live_starts_is_a_service():
    assert {"web", "worker", "beat", "gateway", "engine"} <= OWN.keys()


@pytest.mark.parametrize("service", OWN.values(), ids=OWN)
def test_a_service_runs_a_program_with_settings_that_exist(service):
    assert service["environment"].keys() <= set(SETTINGS)
    assert set(service["depends_on"]) <= COMPOSE["services"].keys()
    command = service["command"]
    for module in re.findall(r"python -m ([a-z.]+)", command):
        assert importlib.util.find_spec(module)
    for name in re.findall(r"manage.py ([a-z_]+)", command):
        assert name in get_commands()
    for module in re.findall(r"-A ([a-z.]+)|([a-z.]+):application", command):
        assert importlib.util.find_spec("".join(module))


def test_the_image_has_the_recorded_flights_that_make_installs():
    (flights,) = re.findall(r"^FLIGHTS := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f" {flights} " in DOCKERFILE


def test_volumes_are_declared():
    used = {volume.partition(":")[0] for service in COMPOSE["services"].values() for volume in service["volumes"]}
    assert used == COMPOSE["volumes"].keys()


def test_the_image_copies_files_that_exist_and_sets_settings_that_exist():
    copied = [word for words in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for word in words.split()]
    assert copied and all((ROOT / name).exists() for name in copied)
    assert set(re.findall(r"\b(LOOKOUT_[A-Z_]+)=", DOCKERFILE)) <= set(SETTINGS)


@pytest.mark.parametrize("options", [WEB_OPTIONS, shlex.split(OWN["web"]["command"])[4:]], ids=["live", "compose"])
def test_a_page_that_is_busy_for_a_minute_keeps_its_connection(options):
    started = uvicorn_main.make_context("uvicorn", ["webapp.asgi:application", *options])
    assert started.params["ws_ping_timeout"] > 60
