"""Gates: every visible text is external, and every translation is complete, current and compiled."""

import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).parents[2]
LOCALE = ROOT / "webapp" / "locale"
DOMAINS = ("django", "djangojs")
LANGUAGES = [code for code, _ in settings.LANGUAGES if code != "en"]
CASES = [(language, domain) for language in LANGUAGES for domain in DOMAINS]
STRING = r'"((?:[^"\\]|\\.)*)"'
PLACEHOLDER = re.compile(r"%(?:\(\w+\))?[-+ #0]*(?:\d+|\*)?(?:\.\d+)?[a-zA-Z%]|\{\w*[^{}]*\}")
# Words that are the same in every language, and examples of what a user types.
SAME = {
    "Lookout", "UTC", "CSV", "GeoJSON", "km", "speed_mps", "ship_type", "accuracy_m",
    "speed_mps > 5", "kind = 'forest'", "SELECT mean(temp) FROM weather",
}  # fmt: skip
SPOKEN = ("title", "aria-label", "aria-description", "aria-valuetext", "placeholder", "alt", "label", "data-confirm")
# What is no text: the attributes of <body>, which pages fill, and all tags of Django.
BODY = re.compile(r"\{% block body_attributes %\}.*?\{% endblock %\}", re.S)
# Texts that stand within tags: what filters write, and what a template hands on to another.
GIVEN = re.compile(r"""\|(?:default|default_if_none|yesno|pluralize|add|join):(["'])(.*?)\1""")
HANDED = re.compile(r"""\{% (?:include|with)\b.*?%\}""", re.S)
NAMED = re.compile(r"""=(["'])(.*?)\1""")
TRANSLATED = re.compile(r"\{% blocktrans(?:late)?\b.*?endblocktrans(?:late)? %\}|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.S)


def tool(name):
    """Return the path of a program of gettext, or fail: a gate that is skipped is none."""
    found = shutil.which(name)
    assert found, f"{name} must be there to check the translations; Debian: apt install gettext"
    return found


def entries(path):
    """Return the entries of a file of translations: (context, text, plural) to (flags, translations)."""
    found = {}
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#~")]
        flags = {flag.strip() for line in lines if line.startswith("#,") for flag in line[2:].split(",")}
        fields, name = {}, None
        for line in lines:
            if begun := re.match(rf"(msg\w+(?:\[\d\])?) {STRING}$", line):
                name, fields[begun.group(1)] = begun.group(1), begun.group(2)
            elif name and (more := re.fullmatch(STRING, line)):
                fields[name] += more.group(1)
        if fields.get("msgid"):
            translations = [text for field, text in sorted(fields.items()) if field.startswith("msgstr")]
            found[fields.get("msgctxt"), fields["msgid"], fields.get("msgid_plural")] = flags, translations
    return found


@cache
def extracted(domain):
    """Return the texts of the sources, as `make messages` finds them, extracted from a copy of them."""
    tool("xgettext")
    recipe = (ROOT / "Makefile").read_text()
    options = re.search(r"^MESSAGES := (.*?)(?<!\\)$", recipe, re.M | re.S).group(1).replace("\\\n", " ").split()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        copy.mkdir()
        for name in ("webapp", "streaming", "templates", "static", "manage.py"):
            source = ROOT / name
            ignored = shutil.ignore_patterns("__pycache__", "locale", "bundle", "vendor", "land")
            shutil.copytree(source, copy / name, ignore=ignored) if source.is_dir() else shutil.copy(source, copy)
        (copy / "webapp" / "locale" / "xx" / "LC_MESSAGES").mkdir(parents=True)
        command = [sys.executable, "manage.py", "makemessages", "--locale", "xx"]
        subprocess.run([*command, "--domain", domain, *options], cwd=copy, check=True, capture_output=True)
        made = copy / "webapp" / "locale" / "xx" / "LC_MESSAGES" / f"{domain}.po"
        return set(entries(made)) if made.is_file() else set()


@pytest.mark.long
@pytest.mark.parametrize(("language", "domain"), CASES)
def test_the_texts_of_a_language_are_those_of_the_sources(language, domain):
    """After a change of texts, ``make messages`` brings the files up to date."""
    kept = set(entries(LOCALE / language / "LC_MESSAGES" / f"{domain}.po"))
    assert (kept - extracted(domain), extracted(domain) - kept) == (set(), set())


@pytest.mark.parametrize(("language", "domain"), CASES)
def test_every_text_is_translated_with_the_same_placeholders(language, domain):
    wrong = []
    for (_, one, many), (flags, translations) in entries(LOCALE / language / "LC_MESSAGES" / f"{domain}.po").items():
        sources = [one, many] if many else [one]
        # A form for one thing need not name the number.
        same = all(
            sorted(PLACEHOLDER.findall(text)) in [sorted(PLACEHOLDER.findall(source)) for source in sources]
            for text in translations
        )
        if "fuzzy" in flags or not all(translations) or not same:
            wrong.append(one)
    assert wrong == []


@pytest.mark.parametrize(("language", "domain"), CASES)
def test_what_is_served_is_compiled_from_the_translations(language, domain, tmp_path):
    folder = LOCALE / language / "LC_MESSAGES"
    made = tmp_path / f"{domain}.mo"
    subprocess.run([tool("msgfmt"), "--check-format", "-o", made, folder / f"{domain}.po"], check=True)
    assert made.read_bytes() == (folder / f"{domain}.mo").read_bytes()


class Visible(HTMLParser):
    """Collects the words of a page that a person sees or hears."""

    def __init__(self):
        super().__init__()
        self.found, self.skipped = [], 0

    def handle_starttag(self, tag, attributes):
        self.skipped += tag in ("script", "style", "code", "kbd")
        if tag == "input" and ("type", "submit") in attributes:
            self.found += [value for name, value in attributes if name == "value" and value]
        self.found += [value for name, value in attributes if name in SPOKEN and value]

    def handle_endtag(self, tag):
        self.skipped -= tag in ("script", "style", "code", "kbd")

    def handle_data(self, text):
        if not self.skipped:
            self.found.append(text)


def untranslated(template):
    """Return the visible words of a template's source that no tag translates."""
    page = Visible()
    page.feed(TRANSLATED.sub("", BODY.sub("", template)))
    page.close()
    handed = " ".join(HANDED.findall(template))
    within = [text for _, text in [*GIVEN.findall(template), *NAMED.findall(handed)]]
    words = [re.sub(r"\s+", " ", text).strip(" \n·,.:()/›") for text in [*page.found, *within]]
    return [text for text in words if re.search(r"[^\W\d_]{2}", text) and text not in SAME]


@pytest.mark.parametrize("path", sorted((ROOT / "templates").rglob("*.html")), ids=lambda path: path.name)
def test_a_template_has_no_visible_text_that_is_not_translated(path):
    assert untranslated(path.read_text()) == []


def test_untranslated_texts_are_found_wherever_they_are():
    assert untranslated('{% translate "a" %}<p title="{{ b }}">{% blocktranslate %}cc{% endblocktranslate %}</p>') == []
    assert untranslated('{% include "bar.html" with title=a %}{{ b|default:_("none yet") }}{{ c|join:", " }}') == []
    for wrong in (
        "<p>Save</p>",
        '<button aria-label="Close">×</button>',
        '<input placeholder="Name">',
        '<input type="submit" value="Save">',
        '<optgroup label="Streams">',
        "{% if a %}Off",
        '{{ a|default:"none yet" }}',
        "{{ a|yesno:'on,off' }}",
        '{% include "bar.html" with title="Teams" %}',
    ):
        assert untranslated(wrong) != []
