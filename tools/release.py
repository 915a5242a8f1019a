"""Make the packages of a release, and its container image: ``python -m tools.release``.

They are made from what is committed, never from what else lies in the folder.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNTIMES = ("docker", "podman")
UNRELEASED = "Unreleased"


class NotReady(Exception):
    """Something has to be done before the release; the message says what."""


def version_of(root: Path) -> str:
    """Return the version in pyproject.toml, which is the only place where it is written."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def changes(text: str) -> dict[str, str]:
    r"""Return what a changelog says, by version in its order; ``Unreleased`` is one of them.

    Examples
    --------
    >>> changes("## [Unreleased]\n\n## [0.1.0] - 2026-11-21\n\n- All.\n")
    {'Unreleased': '', '0.1.0': '- All.'}
    """
    parts = re.split(r"^## \[([^]]+)\].*\n", text, flags=re.MULTILINE)[1:]
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}


def check(root: Path) -> str:
    """Return the version of a checkout that may be released.

    Raises
    ------
    NotReady
        If something is not committed, or the changelog and pyproject.toml do not both name the version.
    """
    changed = _git(root, "status", "--porcelain").strip()
    if changed:
        raise NotReady(f"commit or remove all changes first; got\n{changed}")
    version, told = version_of(root), changes((root / "CHANGELOG.md").read_text())
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise NotReady(f"the version in pyproject.toml must have three numbers, such as 1.2.3; got {version}")
    if told.get(UNRELEASED) or version not in told:
        raise NotReady(f"move what CHANGELOG.md lists as {UNRELEASED} to a section `## [{version}] - <date>` first")
    return version


def export(root: Path, folder: Path) -> None:
    """Write what is committed in a checkout to a folder."""
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)


def build(source: Path, target: Path, built_s: int | None = None) -> list[Path]:
    """Make the archive of the sources and the wheel from a folder; return them and the file of their checksums.

    Parameters
    ----------
    source, target : Path
    built_s : int, optional
        Seconds since 1970 that the files in the wheel bear, so that the same sources give the same wheel.
    """
    environment = os.environ | ({} if built_s is None else {"SOURCE_DATE_EPOCH": str(built_s)})
    target.mkdir(parents=True, exist_ok=True)
    # Without isolation, so with what requirements.lock pins, and without a network.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", target, source]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise NotReady(f"the packages cannot be built:\n{done.stdout[-4000:]}")
    packages = [target / name for name in re.findall(r"lookout-[^\s]+\.(?:tar\.gz|whl)", done.stdout.splitlines()[-1])]
    sums = target / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in packages))
    return [*packages, sums]


def image(source: Path, version: str) -> str:
    """Build the container image of a folder, and return what came of it in a sentence."""
    runtime = next(filter(shutil.which, RUNTIMES), None)
    if runtime is None:
        return "no image: neither docker nor podman is installed"
    if subprocess.run([runtime, "info"], capture_output=True).returncode:
        return f"no image: {runtime} is installed, but does not answer"
    name = f"lookout:{version}"
    if subprocess.run([runtime, "build", "-f", source / "deploy" / "Dockerfile", "-t", name, source]).returncode:
        raise NotReady(f"{runtime} cannot build the image; its own message is above")
    return f"image {name}, in {runtime}"


def main() -> None:
    """Check, build, and say what was made."""
    try:
        version = check(ROOT)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder)
            export(ROOT, source)
            for path in build(source, ROOT / "dist", int(_git(ROOT, "log", "-1", "--format=%ct"))):
                print(path.relative_to(ROOT))
            print(image(source, version))
    except NotReady as refused:
        sys.exit(f"no release: {refused}")


def _git(root, *arguments):
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
