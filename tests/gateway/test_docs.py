import inspect
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest

from streaming.gateway.config import GatewayConfig
from streaming.gateway.transports import transport_kinds

PAGE = (Path(__file__).parents[2] / "docs" / "transports.md").read_text()


def documented(kind):
    """Return the options in the table of a kind, with their defaults."""
    section = PAGE.split(f"### `{kind}`\n")[1].split("\n##")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return {row[1].strip(" `"): row[2].strip() for row in rows}


@pytest.mark.parametrize("kind", transport_kinds())
def test_every_option_of_every_transport_is_documented(kind):
    module = import_module(f"streaming.gateway.transports.{kind}")
    (options,) = [
        member
        for _, member in inspect.getmembers(module, is_dataclass)
        if isinstance(member, type) and member.__module__ == module.__name__
    ]
    assert set(documented(kind)) == {field.name for field in fields(options)}
    for field in fields(options):
        if isinstance(field.default, bool):
            assert documented(kind)[field.name] == str(field.default).lower()
        elif isinstance(field.default, int | float):
            assert float(documented(kind)[field.name]) == field.default


def test_the_bounds_of_the_gateway_are_documented():
    config = GatewayConfig()
    for number in (
        f"{config.block_rows:,}",
        config.waiting_backlog,
        config.live_backlog,
        f"{config.waiting_memory:.0%}".replace("%", " %"),
        f"{config.live_memory:.0%}".replace("%", " %"),
        round(config.flush_s * 1_000),
    ):
        assert f" {number}" in PAGE
