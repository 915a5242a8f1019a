"""What helps those who come next agrees with the Makefile: workflow, hooks, container, templates, and the docs."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z][a-z-]*):(?!=)", MAKEFILE, re.MULTILINE))
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
# YAML 1.1 reads the key `on` as true.
TRIGGERS = WORKFLOW.get("on") or WORKFLOW[True]
JOBS = WORKFLOW["jobs"]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
COMMANDS = re.compile(r"""^(?:\s*- run: |exec |"\w+": ")?(?:[A-Z_]+=\S+ )*make ([a-z][a-z-]*)""", re.MULTILINE)
TELLING = [
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", ".ci/run")),
    *(path for path in (ROOT / ".github").rglob("*") if path.is_file()),
    *(ROOT / ".devcontainer").iterdir(),
]


def commands(text, prose=False):
    """Return the targets of make that a script runs, or that a page of prose has in its code."""
    if prose:
        blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        text = "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])
    return set(COMMANDS.findall(text))


def steps(job, key):
    return [step[key] for step in JOBS[job]["steps"] if key in step]


def test_commands_are_found_in_every_form():
    assert commands("make one\n  - run: make two\nexec make three\nA=b make four\n# to make five") == {
        *("one", "two", "three", "four"),
    }
    assert commands("We\nmake one of `make two` and\n```sh\nmake three ALL=1\n```\n", prose=True) == {"two", "three"}


@pytest.mark.parametrize("path", TELLING, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_target_of_make_that_is_named_exists(path):
    assert commands(path.read_text(), prose=path.suffix == ".md") - TARGETS == set()


def test_every_target_that_is_no_file_is_declared_so_and_told_in_the_readme():
    (declared,) = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert set(declared.split()) == TARGETS
    told = set().union(*(commands((ROOT / page).read_text(), prose=True) for page in ("README.md", "CONTRIBUTING.md")))
    # Parts of `make test` and `make lint`, and what needs no word.
    assert {target for target in TARGETS - told if not target.startswith(("test-", "lint-"))} <= {"clean"}


def test_the_workflow_checks_every_change_and_explores_each_week():
    assert {"push", "pull_request", "schedule"} <= TRIGGERS.keys()
    assert steps("check", "run") == [".ci/run"] and (ROOT / ".ci" / "run").stat().st_mode & 0o100
    assert steps("explore", "run") == ["make explore"]
    assert "schedule" in JOBS["explore"]["if"] and JOBS["check"]["if"] == "github.event_name != 'schedule'"
    (when,) = TRIGGERS["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when["cron"])
    assert WORKFLOW["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_pins_its_actions(job):
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in steps(job, "uses"))


def test_the_oldest_python_that_lookout_runs_on_is_checked():
    versions = JOBS["check"]["strategy"]["matrix"]["python"]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"


def test_hooks_call_tools_that_are_installed_and_download_nothing():
    assert [repo["repo"] for repo in HOOKS] == ["local"]
    for hook in HOOKS[0]["hooks"]:
        assert hook["language"] == "system"
        program = shlex.split(hook["entry"])[0]
        found = Path(sys.executable).with_name(Path(program).name) if program.startswith(".venv/bin/") else None
        assert found.exists() if found else shutil.which(program), program


def test_hooks_run_what_make_lint_runs():
    recipes = "".join(re.findall(r"^lint-[a-z]+:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE))
    entries = [hook["entry"] for hook in HOOKS[0]["hooks"]]
    tools = re.findall(r"^\t\$\(BIN\)/((?!python)[a-z-]+(?: (?:format|check)\b)?)", recipes, re.MULTILINE)
    assert {"ruff check", "mypy"} <= set(tools)
    for tool in tools:
        assert any(entry.startswith(f".venv/bin/{tool}") for entry in entries), tool


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS[0]["hooks"] if hook["entry"].startswith("sh ")], ids=lambda it: it["id"]
)
def test_hooks_of_javascript_pass_files_on_and_do_nothing_where_npm_has_installed_nothing(hook, there, tmp_path):

    if there:
        tool = tmp_path / "node_modules" / ".bin" / hook["id"]
        tool.parent.mkdir(parents=True)
        tool.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
        tool.chmod(0o755)
    done = subprocess.run([*shlex.split(hook["entry"]), "a b.js", "c.js"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == (3 if there else 0)
    assert done.stdout.endswith("a b.js c.js\n" if there else "")


def test_the_container_has_what_the_continuous_integration_installs():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert commands(container["postCreateCommand"]) == {"install"}
    dockerfile = (ROOT / ".devcontainer" / container["build"]["dockerfile"]).read_text()
    # The image's Python brings venv itself.
    needed = set(re.findall(r"missing\+=\(([a-z0-9-]+)\)", (ROOT / ".ci" / "run").read_text())) - {"python3-venv"}
    (installed,) = re.findall(r"--no-install-recommends (.*?) \\", dockerfile)
    assert needed <= set(installed.split())
    (minor,) = re.findall(r"^FROM python:3\.(\d+)", dockerfile, re.MULTILINE)
    assert int(minor) >= 11


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_is_one(path):
    form = yaml.safe_load(path.read_text())
    assert form.keys() == {"name", "description", "labels", "body"}
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert {part["type"] for part in fields} <= {"input", "textarea", "dropdown", "checkboxes"}
    ids = [part["id"] for part in fields]
    assert len(set(ids)) == len(ids) and all(part["attributes"]["label"] for part in fields)
    assert any(part.get("validations", {}).get("required") for part in fields)


def test_a_report_of_a_misread_feed_must_have_a_sample_of_its_bytes():
    form = yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "feed-misread.yml").read_text())
    (sample,) = [part for part in form["body"] if part.get("id") == "sample"]
    assert sample["validations"]["required"]


def test_editors_indent_as_the_tools_do():
    editors = configparser.ConfigParser()
    editors.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    widths = PROJECT["tool"]["ruff"]["line-length"], json.loads((ROOT / ".prettierrc.json").read_text())["printWidth"]
    assert {int(editors["*"]["max_line_length"]), *widths} == {120}
    assert editors["*.py"]["indent_size"] == "4"
    scripts = next(editors[name] for name in editors if name.startswith("*.{js"))
    assert scripts["indent_size"] == str(json.loads((ROOT / ".prettierrc.json").read_text()).get("tabWidth", 2))


def test_links_of_the_security_page_lead_somewhere():
    text = (ROOT / "SECURITY.md").read_text()
    for page, anchor in re.findall(r"\]\((docs/[\w.-]+\.md)(?:#([\w-]+))?\)", text):
        titles = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, (page, anchor)
