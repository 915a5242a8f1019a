"""Where the parts of a Lookout are."""

from pathlib import Path

from django.conf import settings
from django.db import connection

from streaming.settings import EngineSettings, embedded_redis_file
from streaming.spaces import EARTH
from webapp.backup.contents import Unusable

DATABASE, REDIS, ENGINE, HISTORY, LAYERS, FILES = "database", "redis", "engine", "history", "layers", "files"
# Files of the state folder that are needed besides: secrets, and what people have put there.
KEPT = ("secret_key", "vapid_key.pem", "maps", "feeds")


def part_places() -> dict[str, Path]:
    """Return the folder of each part; that of the engine's states has a folder for each space.

    Raises
    ------
    Unusable
        If a part is not on this machine, so that somebody else backs it up.
    """
    home, engine = settings.HOME, EngineSettings.from_environ()
    if connection.vendor != "sqlite" or Path(connection.settings_dict["NAME"]).parent != home:
        raise Unusable("the database must be the SQLite file of the state folder; see docs/backup.md for another one")
    if settings.LOG_URL or engine.state_uri:
        raise Unusable(
            "logs and states must be on this machine; those in Kafka or in another store have their own backups"
        )
    kept = embedded_redis_file(home)
    if not kept.is_file() or kept.read_text().strip() != settings.REDIS_URL:
        raise Unusable("Redis must be the one that manage.py live starts; see docs/backup.md for another one")
    if engine.space == EARTH and engine.state_dir != home / ENGINE / EARTH.name:
        raise Unusable(f"LOOKOUT_STATE_DIR must not be set; got {engine.state_dir}")
    return places_below(home) | {HISTORY: settings.HISTORY_DIR, LAYERS: settings.LAYERS_DIR}


def places_below(home: Path) -> dict[str, Path]:
    """Return the folder of each part of a Lookout that has all of them in its state folder."""
    return {
        DATABASE: home,
        REDIS: home / "redis",
        ENGINE: home / ENGINE,
        HISTORY: home / HISTORY,
        LAYERS: home / LAYERS,
        FILES: home,
    }
