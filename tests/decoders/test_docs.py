"""docs/decoders.md says what the code does."""

import re
from pathlib import Path

import orjson
import pytest

from streaming.decoders import decoder_class, decoder_kinds, make_decoder
from streaming.decoders.units import FACTORS

ROOT = Path(__file__).parents[2]
DOCS = (ROOT / "docs" / "decoders.md").read_text()


def section(kind):
    return DOCS.split(f"\n### {kind}\n")[1].split("\n#")[0]


@pytest.mark.parametrize("kind", decoder_kinds())
def test_every_option_is_documented_with_its_default(kind):
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| ([^|]*)\|", section(kind), re.MULTILINE)
    described = decoder_class(kind).options.describe()
    assert [name for name, _ in rows] == [option.name for option in described]
    for (_, default), option in zip(rows, described, strict=True):
        if isinstance(option.default, bool | int | float):
            assert default.strip() == orjson.dumps(option.default).decode().removesuffix(".0")


@pytest.mark.parametrize("unit", FACTORS)
def test_every_unit_is_documented(unit):
    assert f"`{unit}`" in section("csv")


def test_every_reason_of_malformed_input_is_documented():
    sources = "".join(path.read_text() for path in (ROOT / "streaming" / "decoders").glob("*.py"))
    reasons = set(re.findall(r'(?:fault|_malformed)\(\s*(?:gettext(?:_noop)?\()?"([^"]+)"', sources))
    reasons |= set(re.findall(r'return (?:gettext(?:_noop)?\()?"([a-zA-Z -]+)"\)?$', sources, re.MULTILINE))
    reasons |= {"not a message", "hex ident", "feature without key", "no key", "null island", "line too long"}
    reasons |= set(re.findall(r'^[A-Z_]+ = (?:gettext(?:_noop)?\()?"([a-zA-Z][a-zA-Z -]+)"\)?$', sources, re.MULTILINE))
    reasons -= {"skip"}  # a word of Arrow's
    assert len(reasons) > 25
    assert not {reason for reason in reasons if f"`{reason}`" not in DOCS}


def test_the_examples_are_valid_definitions():
    examples = re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        assert make_decoder(orjson.loads(example), "s")
