"""`make release`: it refuses what is not ready, and its wheel is all that a user needs."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tools import release

ROOT = Path(__file__).parents[2]
IGNORED = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "node_modules", "tests", "var")

# What a browser loads before and after the log-in, answered by the installed application.
BROWSE = """
import re, sys
from pathlib import Path
import webapp
from django.contrib.auth.models import User
from django.test import Client
from streaming.decoders import decoder_kinds

assert Path(webapp.__file__).is_relative_to(sys.prefix), webapp.__file__
assert "ais" in decoder_kinds()
client = Client(headers={"host": "localhost", "accept-language": "de"})


def read(address):
    answer = client.get(address)
    content = answer.getvalue()
    assert answer.status_code == 200 and content, (address, answer.status_code)
    return content.decode(errors="replace")


def browse(address):
    page = read(address)
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert files, address
    for file in files:
        read(file)
    print(address, "with", len(files), "files")
    return page


assert "Passwort" in browse("/login/")
client.force_login(User.objects.create_superuser("ada"))
page = browse("/")
assert "bundle/main." in page and "/static/js/main." not in page
browse("/operations/")
browse("/admin/")
read("/static/land/0_45.json")
"""


@pytest.fixture
def checkout(tmp_path):
    """Return a repository with a version that could be released."""
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [1.2.3] - 2026-11-27\n\n- All.\n")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def git(folder, *arguments):
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, env=environment, capture_output=True)


def commit(folder):
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "All")


def runtime(folder, name, *, answers=True):
    """Make a program that stands for a container runtime, and notes its arguments."""
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/asked"\nexit {0 if answers else 1}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_version_that_the_changelog_tells_of_may_be_released(checkout):
    assert release.check(checkout) == "1.2.3"


def test_what_is_not_committed_is_named(checkout):
    (checkout / "notes").touch()
    with pytest.raises(release.NotReady, match=r"commit or remove all changes first; got\n\?\? notes"):
        release.check(checkout)


@pytest.mark.parametrize(
    ("file", "was", "now", "told"),
    [
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- More.\n", "move what CHANGELOG.md lists as Unreleased"),
        ("CHANGELOG.md", "[1.2.3]", "[1.2.2]", r"section `## \[1.2.3\]"),
        ("pyproject.toml", "1.2.3", "1.3.0.dev0", "must have three numbers, such as 1.2.3; got 1.3.0.dev0"),
    ],
)
def test_a_version_that_is_not_finished_is_refused(checkout, file, was, now, told):
    path = checkout / file
    path.write_text(path.read_text().replace(was, now))
    commit(checkout)
    with pytest.raises(release.NotReady, match=told):
        release.check(checkout)


def test_only_what_is_committed_is_released(checkout, tmp_path_factory):
    (checkout / "notes").touch()
    source = tmp_path_factory.mktemp("source")
    release.export(checkout, source)
    assert sorted(path.name for path in source.iterdir()) == ["CHANGELOG.md", "pyproject.toml"]


def test_the_image_is_left_out_with_the_reason_where_it_cannot_be_built(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert release.image(tmp_path, "1.2.3") == "no image: neither docker nor podman is installed"
    runtime(tmp_path, "podman", answers=False)
    assert release.image(tmp_path, "1.2.3") == "no image: podman is installed, but does not answer"


def test_the_image_is_built_by_the_runtime_that_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    runtime(tmp_path, "podman")
    assert release.image(tmp_path, "1.2.3") == "image lookout:1.2.3, in podman"
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["info", f"build -f {tmp_path}/deploy/Dockerfile -t lookout:1.2.3 {tmp_path}"]


def test_versions_stand_newest_first_and_pyproject_has_the_newest_or_one_in_work():
    names = list(release.changes((ROOT / "CHANGELOG.md").read_text()))
    versions = [tuple(map(int, name.split("."))) for name in names[1:]]
    assert names[0] == release.UNRELEASED and versions == sorted(versions, reverse=True)
    numbers, _, in_work = release.version_of(ROOT).partition(".dev")
    version = tuple(map(int, numbers.split(".")))
    assert version > versions[0] if in_work else version == versions[0]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a Python environment into which the wheel was installed, and the packages by their suffix."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "source", ignore=IGNORED)
    packages = {path.suffix: path for path in release.build(folder / "source", folder / "dist")}
    place = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", packages[".whl"]], check=True)
    # What it depends on is borrowed; a path in such a file does not bring the checkout, which is installed there, too.
    (own,) = place.glob("lib/python3*/site-packages")
    (own / "borrowed.pth").write_text("".join(f"{path}\n" for path in sys.path if path.endswith("site-packages")))
    return place, packages


@pytest.mark.long
def test_what_a_wheel_installs_runs_in_an_empty_folder(installed, tmp_path):
    place, _ = installed
    named = ("LOOKOUT_", "DJANGO_", "PYTHON", "REDIS_URL", "DATABASE_URL")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(named)}
    clean |= {"LOOKOUT_STATIC_DIR": str(tmp_path / "var" / "static"), "LOOKOUT_HOST": "localhost"}

    def lookout(*arguments):
        command = [place / "bin" / "lookout", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    assert lookout("--version").strip() == release.version_of(ROOT)
    assert "no issues" in lookout("check")
    lookout("migrate", "--noinput", "-v0")
    assert (tmp_path / "var" / "db.sqlite3").is_file()
    assert lookout("collect_pages").strip() == "collected"
    assert "/login/ with" in lookout("shell", "--no-imports", "-c", BROWSE)
    assert "/login/once/" in lookout("create_login_link")
    assert [path.name for path in tmp_path.iterdir()] == ["var"]


@pytest.mark.long
def test_a_wheel_has_all_files_of_the_page_and_of_the_packages(installed):
    place, packages = installed
    (own,) = place.glob("lib/python3*/site-packages")
    for folder, there in (("static", "webapp/page/static"), ("templates", "webapp/page/templates")):
        assert files(ROOT / folder) == files(own / there)
    for package in ("streaming", "webapp"):
        kept = {name for name in files(ROOT / package) if not name.endswith(".po")}
        assert kept <= files(own / package), package
    sums = packages[""].read_text()
    assert re.findall(r"^[0-9a-f]{64}  lookout-\S+\.(tar\.gz|whl)$", sums, re.MULTILINE) == ["tar.gz", "whl"]


def files(folder):
    """Return the names of the files below a folder, without what Python has compiled."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)) for path in paths}
