"""The page's own files: hashed names, compressed once, the modules of the page, and the one file that they make."""

import hashlib
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from posixpath import dirname, join, normpath

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from whitenoise.compress import Compressor
from whitenoise.storage import CompressedManifestStaticFilesStorage

IMPORT = re.compile(r"""^(?:import|export)\b[^;"']*["'](\.[^"']+)["']""", re.M)
FINGERPRINT = "sources"
MAIN_MODULE = "js/main.js"
# All modules in one, and the fingerprint of those that it was made of.
BUNDLE, BUNDLED = "bundle/main.js", "bundle/sources"
ESBUILD = "esbuild@0.28.2"
BROTLI_QUALITY = 9


class QuickCompressor(Compressor):
    """Compresses at a tenth of the time that the last few percents would take."""

    @staticmethod
    def compress_brotli(data):
        """Return bytes as Brotli."""
        return brotli.compress(data, quality=BROTLI_QUALITY)


class HashedFiles(CompressedManifestStaticFilesStorage):
    """Gives each file a name with its hash, in imports between modules too, so that browsers may keep it for ever."""

    support_js_module_import_aggregation = True

    def create_compressor(self, **options):
        """Return what compresses one file."""
        return QuickCompressor(**options)

    def compress_files(self, paths):
        """Compress what pages ask for: files under their hashed names."""
        return super().compress_files(set(paths) & set(self.hashed_files.values()))


def collect() -> bool:
    """Bring `STATIC_ROOT` up to date with the sources; return whether that was needed."""
    kept, found = Path(settings.STATIC_ROOT) / FINGERPRINT, _fingerprint()
    if kept.is_file() and kept.read_text() == found:
        return False
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    kept.write_text(found)
    return True


def _fingerprint():
    """Return a hash of where the sources are, when they were changed and how long they are."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for finder in finders.get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: found[0]):
            path = Path(storage.path(name))
            status = path.stat()
            digest.update(f"{path}\0{status.st_mtime_ns}\0{status.st_size}\n".encode())
    return digest.hexdigest()


@lru_cache
def modules(entry: str) -> list[str]:
    """Return the names of a module of JavaScript and of all that it imports, nearest first.

    Parameters
    ----------
    entry : str
        Such as ``js/main.js``.
    """
    known = {entry: None}
    waiting = [entry]
    while waiting:
        name = waiting.pop(0)
        source = Path(finders.find(name)).read_text()
        imported = [normpath(join(dirname(name), target)) for target in IMPORT.findall(source)]
        waiting += [target for target in dict.fromkeys(imported) if target not in known]
        known |= dict.fromkeys(imported)
    return list(known)


@lru_cache
def scripts() -> list[str]:
    """Return what the page loads, first what it runs: one file, or where that is not of the present modules, these."""
    kept = finders.find(BUNDLED)
    fresh = kept is not None and Path(kept).read_text() == _fingerprint_of(modules(MAIN_MODULE))
    return [BUNDLE] if fresh else modules(MAIN_MODULE)


def bundle() -> None:
    """Make one file of the page's modules, beside them.

    Raises
    ------
    subprocess.CalledProcessError
        When esbuild, which npm fetches, fails.
    """
    source = Path(finders.find(MAIN_MODULE))
    target = source.parents[1] / BUNDLE
    options = ("--bundle", "--minify", "--format=esm", "--sourcemap", "--sources-content=false", "--log-level=warning")
    subprocess.run(["npx", "--yes", ESBUILD, source, *options, f"--outfile={target}"], check=True)
    (source.parents[1] / BUNDLED).write_text(_fingerprint_of(modules(MAIN_MODULE)))
    for made in target.parent.iterdir():
        made.chmod(0o644)  # part of the sources, unlike what other commands write


def _fingerprint_of(names):
    """Return a hash of the names and the texts of modules."""
    digest = hashlib.sha256(ESBUILD.encode())
    for name in sorted(names):
        digest.update(f"{name}\0{Path(finders.find(name)).read_text()}\0".encode())
    return digest.hexdigest()
