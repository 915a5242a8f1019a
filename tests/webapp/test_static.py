"""The page's files: collected where their sources have changed, and all modules known beforehand."""

import os
from pathlib import Path

import pytest
from django.core.management import call_command

from webapp.pages import static
from webapp.pages.static import modules, scripts, style


@pytest.fixture
def sources(settings, tmp_path):
    """Give the project one module that imports another; return their folder."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "a.js").write_text('import {\n  b,\n} from "./b.js";\n')
    (folder / "b.js").write_text("export const b = 1;\n")
    settings.STATICFILES_DIRS = [folder]
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATIC_ROOT = str(tmp_path / "static")
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": "webapp.pages.static.HashedFiles"}}
    return folder


def hashed(settings, name):
    """Return the texts of a file under its hashed names."""
    stem, suffix = name.split(".")
    return [path.read_text() for path in Path(settings.STATIC_ROOT).glob(f"{stem}.*.{suffix}")]


def test_an_edited_module_and_what_imports_it_get_new_names(sources, settings, capsys):
    call_command("collect_pages")
    (before,) = hashed(settings, "a.js")
    assert 'from "./b.js"' not in before
    (sources / "b.js").write_text("export const b = 2;\n")
    call_command("collect_pages")
    (after,) = hashed(settings, "a.js")
    assert after != before
    assert hashed(settings, "b.js") == ["export const b = 2;\n"]
    assert capsys.readouterr().out == "collected\ncollected\n"


def test_sources_that_have_not_changed_cost_no_work(sources, capsys):
    for _ in range(2):
        call_command("collect_pages")
    assert capsys.readouterr().out == "collected\nnothing has changed\n"


def test_collected_files_are_private(sources, settings):
    umask = os.umask(0o077)
    try:
        call_command("collect_pages")
    finally:
        os.umask(umask)
    for folder, _, files in os.walk(settings.STATIC_ROOT):
        assert all(os.stat(os.path.join(folder, name)).st_mode & 0o077 == 0 for name in ("", *files))


def test_all_modules_of_the_page_are_found():
    found = modules("js/main.js")
    assert found[0] == "js/main.js"
    assert {"js/map/map.js", "js/map/land.js", "js/store/socket.js"} <= set(found)
    assert len(found) == len(set(found)) > 40


def test_the_page_loads_one_file_of_all_modules_and_one_of_all_styles():
    """After a change of a module or a style, ``make bundle`` makes them anew."""
    scripts.cache_clear(), style.cache_clear()
    assert scripts() == ["bundle/main.js"]
    assert style() == "bundle/main.css"


def test_the_page_loads_the_modules_themselves_where_one_has_changed_since(monkeypatch):
    known = static._fingerprint_of
    monkeypatch.setattr(static, "_fingerprint_of", lambda names: known(names[1:]))
    scripts.cache_clear(), style.cache_clear()
    assert scripts() == modules("js/main.js")
    assert style() == "css/main.css"
    scripts.cache_clear(), style.cache_clear()
