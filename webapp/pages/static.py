"""Static files: hashed names, compression, the page's JavaScript modules and styles, and their bundles."""

import hashlib
import re
import subprocess
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import Any, cast

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

IMPORT = re.compile(r"""^(?:@?import|export)\b[^;"']*["'](\.[^"']+)["']""", re.M)
FINGERPRINT = "sources"
MAIN_MODULE, MAIN_STYLE = "js/main.js", "css/main.css"
# What is bundled, each into one file; and the fingerprint of what the bundles were made from.
BUNDLES = {MAIN_MODULE: "bundle/main.js", MAIN_STYLE: "bundle/main.css"}
BUNDLED = "bundle/sources"
ESBUILD = "esbuild@0.28.2"
BROTLI_QUALITY = 9


class QuickCompressor(Compressor):
    """Compresses in a tenth of the time of the highest Brotli quality, which would save only a few percent more."""

    @staticmethod
    def compress_brotli(data: bytes) -> bytes:
        """Return bytes as Brotli."""
        return brotli.compress(data, quality=BROTLI_QUALITY)


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Adds a hash to each file name, also in imports between modules, so that browsers may cache files forever."""

    support_js_module_import_aggregation = True
    # One pass a link: a chain of imports may be this long.
    max_post_process_passes = 30

    def create_compressor(self, **options: Any) -> QuickCompressor:
        """Return the compressor for files."""
        return QuickCompressor(**options)

    def compress_files(self, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Compress the files with hashed names only: pages ask for no others."""
        return super().compress_files(set(paths) & set(self.hashed_files.values()))


def collect() -> bool:
    """Collect static files into `STATIC_ROOT` if their sources changed; return whether they did."""
    kept, found = Path(cast("str", settings.STATIC_ROOT)) / FINGERPRINT, fingerprint()
    if kept.is_file() and kept.read_text() == found:
        return False
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    kept.write_text(found)
    return True


def fingerprint() -> str:
    """Return a hash of the paths, modification times and sizes of the sources of static files."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for finder in finders.get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            path = Path(storage.path(name))
            status = path.stat()
            digest.update(f"{path}\0{status.st_mtime_ns}\0{status.st_size}\n".encode())
    return digest.hexdigest()


@lru_cache
def modules(entry: str) -> list[str]:
    """Return the names of a JavaScript module or style sheet and of all that it imports, breadth first.

    Parameters
    ----------
    entry : str
        Its name, such as ``js/main.js``.
    """
    known = {entry: None}
    waiting = [entry]
    while waiting:
        name = waiting.pop(0)
        source = _source(name).read_text()
        imported = [normpath(join(dirname(name), target)) for target in IMPORT.findall(source)]
        waiting += [target for target in dict.fromkeys(imported) if target not in known]
        known |= dict.fromkeys(imported)
    return list(known)


@lru_cache
def scripts() -> list[str]:
    """Return the names of the scripts for the page: the bundle, or all modules if the bundle is missing or outdated."""
    return [BUNDLES[MAIN_MODULE]] if _fresh() else modules(MAIN_MODULE)


@lru_cache
def style() -> str:
    """Return the name of the page's style sheet: the bundle, or the one that imports the others."""
    return BUNDLES[MAIN_STYLE] if _fresh() else MAIN_STYLE


def bundle() -> None:
    """Bundle the page's modules into one file in ``static``, and its styles into another.

    Raises
    ------
    subprocess.CalledProcessError
        When esbuild, which npm downloads, fails.
    """
    root = _source(MAIN_MODULE).parents[1]
    options = ("--bundle", "--minify", "--sourcemap", "--sources-content=false", "--log-level=warning")
    for entry, target in BUNDLES.items():
        form = ("--format=esm",) if entry == MAIN_MODULE else ()
        made = f"--outfile={root / target}"
        subprocess.run(["npx", "--yes", ESBUILD, root / entry, *options, *form, made], check=True)
    (root / BUNDLED).write_text(_fingerprint_of(_sources()))
    for file in (root / BUNDLED).parent.iterdir():
        file.chmod(0o644)  # readable by all: the bundle is part of the sources, unlike files that other commands write


def _source(name: str) -> Path:
    """Return the file of a module or style sheet."""
    return Path(cast("str", finders.find(name)))


def _sources() -> list[str]:
    """Return the names of all that is bundled."""
    return [name for entry in BUNDLES for name in modules(entry)]


def _fresh() -> bool:
    """Return whether the bundles were made of the sources as they are."""
    kept = finders.find(BUNDLED)
    return kept is not None and Path(kept).read_text() == _fingerprint_of(_sources())


def _fingerprint_of(names: Iterable[str]) -> str:
    """Return a hash of the names and contents of modules, and of esbuild's version."""
    digest = hashlib.sha256(ESBUILD.encode())
    for name in sorted(names):
        digest.update(f"{name}\0{_source(name).read_text()}\0".encode())
    return digest.hexdigest()
