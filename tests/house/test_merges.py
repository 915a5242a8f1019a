"""No file keeps what a merge could not decide."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Built from parts, so that this file has none itself.
MARK = re.compile("^(" + "|".join(sign * 7 for sign in "<>") + ") ", re.MULTILINE)
TEXTS = {".py", ".js", ".mjs", ".html", ".css", ".md", ".toml", ".yaml", ".yml", ".json", ".txt", ".sh", ""}


def test_no_file_has_marks_of_a_conflict():
    named = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in named.split("\0") if name and Path(name).suffix in TEXTS]
    texts = [path for path in files if path.is_file() and MARK.search(path.read_text(errors="replace"))]
    assert [str(path.relative_to(ROOT)) for path in texts] == []
