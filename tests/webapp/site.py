"""A web server in a process of its own, as `make live` starts it, without engine and gateway."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from bench.live import PATIENCE_S
from bench.ports import free_port
from tests.prepared import copy_database, prepared
from webapp.live.programs import Installation, web_programs

ROOT = Path(__file__).parents[2]
SET_UP = """
from django.contrib.auth import get_user_model
from webapp.models import ApiToken
user = get_user_model().objects.create_superuser("ann", password="a long pass phrase")
token = ApiToken(user=user, name="test")
print(token.draw())
token.save()
"""


class Site:
    """A running web server, with one user; a context that ends it.

    Parameters
    ----------
    home : Path
        The state folder: empty, or that of a site that runs already, whose user it shares.
    redis_url : str
    variables : dict of str to str
        Of the environment.

    Attributes
    ----------
    token : str
        Of the user.
    """

    def __init__(self, home: Path, redis_url: str, **variables: str) -> None:
        agreed = {"LOOKOUT_HOME": str(home), "LOOKOUT_REDIS_URL": redis_url, "DATABASE_URL": ""} | variables
        self.environment = os.environ | agreed
        proxies = tuple(filter(None, variables.get("LOOKOUT_TRUSTED_PROXIES", "").split(",")))
        self.place = Installation(home, redis_url, "127.0.0.1", free_port(), proxies=proxies)
        self.log = home / f"web-{self.place.port}.log"
        self.environment |= {"LOOKOUT_PORT": str(self.place.port), "LOOKOUT_STATIC_DIR": str(prepared() / "static")}

    def __enter__(self) -> "Site":
        if not (self.place.home / "db.sqlite3").exists():
            copy_database(self.place.home)
            self.token = self.manage("shell", "--no-imports", "-c", SET_UP).split()[-1]
        web, *_ = web_programs(self.place)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                list(map(str, web.command)),
                cwd=ROOT,
                env=self.environment | dict(web.variables),
                stdout=log,
                stderr=log,
            )
        self._wait()
        return self

    def __exit__(self, *_) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def login_link(self) -> str:
        """Return an address that logs the user in, once."""
        return self.manage("create_login_link", "--user", "ann").strip().split()[-1]

    def manage(self, *arguments: str) -> str:
        """Run a command of the project; return what it prints."""
        command = [sys.executable, "manage.py", *arguments]
        run = subprocess.run(command, cwd=ROOT, env=self.environment, check=True, stdout=subprocess.PIPE, text=True)
        return run.stdout

    def _wait(self):
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            try:
                return urllib.request.urlopen(f"{self.place.address}/login/", timeout=PATIENCE_S).close()
            except urllib.error.URLError:
                assert self._process.poll() is None, self.log.read_text()
                time.sleep(0.1)
        raise TimeoutError(self.log.read_text())
