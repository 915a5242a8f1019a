"""Build Lookout's packages; what is fixed about them is in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# Folders of the page, which lie beside the packages in a checkout. `webapp.settings` finds them in both places.
PAGE = ("static", "templates")


class BuildWithPage(build_py):
    """Adds the files of the page to the package of the web application."""

    def run(self):
        """Copy the packages, then the folders, unless the install only points to the checkout."""
        super().run()
        if self.editable_mode:
            return
        page = Path(self.build_lib, "webapp", "page")
        shutil.rmtree(page, ignore_errors=True)
        for folder in PAGE:
            shutil.copytree(folder, page / folder)


setup(cmdclass={"build_py": BuildWithPage})
