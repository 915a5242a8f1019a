"""The streams of a new installation: those of the demonstration, and public live feeds, which are disabled."""

from typing import Any

from streaming.gateway.samples import FLIGHTS

_SIMULATED = {"kind": "geojson", "key": "id", "time": "time"}

# The decoder for the file that `samples.prepare_flights` writes.
FLIGHTS_DECODER: dict[str, Any] = {
    "kind": "csv",
    "columns": {
        "key": "icao24",
        "time": "timestamp",
        "lon": "longitude",
        "lat": "latitude",
        "altitude": "altitude",
    },
    "time_format": "epoch_s",
    "altitude_unit": "feet",
    "properties": {
        "callsign": "callsign",
        "groundspeed": {"name": "speed_mps", "unit": "knots"},
        "track": {"name": "course_deg", "unit": "degrees"},
        "vertical_rate": {"name": "vertical_rate_mps", "unit": "feet_per_min"},
    },
}

# Definitions as the gateway reads them, and the title and icon of each stream for people.
DEMO_STREAMS: list[dict[str, Any]] = [
    {
        "name": "aircraft",
        "title": "Aircraft over Switzerland",
        "icon": "aircraft",
        "space": "earth",
        "enabled": True,
        "ttl_s": 60,
        "transport": {"kind": "file", "path": str(FLIGHTS), "speed": 4, "loop": True, "restamp": True},
        "decoder": FLIGHTS_DECODER,
    },
    {
        "name": "ships",
        "title": "Ships",
        "icon": "ship",
        "space": "earth",
        "enabled": True,
        "ttl_s": 60,
        "transport": {"kind": "simulator", "fleet": "ships", "count": 400, "seed": 1, "step_s": 2, "pace": 30},
        "decoder": _SIMULATED,
    },
    {
        "name": "buses",
        "title": "Buses in Helsinki",
        "icon": "bus",
        "space": "earth",
        "enabled": True,
        "ttl_s": 60,
        # About 500 elements/s: five million in three hours, below 200 MB.
        "stored": True,
        "retention_s": 3 * 3600,
        "transport": {"kind": "simulator", "fleet": "buses", "count": 120, "seed": 1, "step_s": 1, "pace": 4},
        "decoder": _SIMULATED,
    },
    {
        "name": "finnish_ais",
        "title": "Ships in Finnish waters (Digitraffic, live)",
        "icon": "ship",
        "space": "earth",
        "enabled": False,
        "ttl_s": 1800,
        "transport": {
            "kind": "http_poll",
            "url": "https://meri.digitraffic.fi/api/ais/v1/locations",
            "interval_s": 30,
            "headers": {"Digitraffic-User": "Lookout"},
        },
        "decoder": {
            "kind": "geojson",
            "framing": "document",
            "key": "mmsi",
            "time": "timestampExternal",
            "properties": {
                "sog": {"name": "speed_mps", "unit": "knots"},
                "cog": {"name": "course_deg", "unit": "degrees"},
                "heading": {"name": "heading_deg", "unit": "degrees"},
                "rot": "turn_code",
            },
            # ITU-R M.1371-5, annex 8: the values that ships send for "not available".
            "null_values": {"sog": [102.3], "cog": [360], "heading": [511], "rot": [-128]},
        },
    },
    {
        "name": "mbta",
        "title": "Buses and trains in Boston (MBTA, live)",
        "icon": "bus",
        "space": "earth",
        "enabled": False,
        "ttl_s": 600,
        "transport": {
            "kind": "http_poll",
            "url": "https://cdn.mbta.com/realtime/VehiclePositions.pb",
            "interval_s": 10,
        },
        "decoder": {"kind": "gtfs_realtime"},
    },
    {
        "name": "adsb_lol",
        "title": "Aircraft around Zurich (adsb.lol, live)",
        "icon": "aircraft",
        "space": "earth",
        "enabled": False,
        "ttl_s": 60,
        "transport": {"kind": "http_poll", "url": "https://api.adsb.lol/v2/point/47.45/8.55/250", "interval_s": 5},
        "decoder": {"kind": "aircraft_json"},
    },
]
