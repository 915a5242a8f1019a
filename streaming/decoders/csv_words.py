"""What names of columns mean: the parts of an element, properties, and units."""

import re
from typing import Any

# By what an element needs: names of columns as feeds write them, without signs and units, the clearest first.
NAMES = {
    "key": (
        *(
            "mmsi",
            "icao24",
            "icao",
            "hexident",
            "hex",
            "vehicleid",
            "vesselid",
            "shipid",
            "busid",
            "deviceid",
            "trackerid",
        ),
        *("imei", "unitid", "assetid", "objectid", "individuallocalidentifier", "entityid", "userid", "tripid", "uuid"),
        *(
            "vehicle",
            "vessel",
            "ship",
            "bus",
            "device",
            "tracker",
            "unit",
            "asset",
            "object",
            "aircraft",
            "train",
            "animal",
        ),
        *("kennung", "fahrzeugid", "fahrzeug", "kennzeichen", "schiff", "geraet", "gerät", "objekt"),
        *("id", "key", "callsign", "registration", "licenseplate", "plate", "name", "shipname", "label"),
    ),
    "time": (
        *("timestamp", "datetime", "basedatetime", "eventtime", "positiontime", "gpstime", "utctime", "timeutc", "utc"),
        *(
            "recordedat",
            "reportedat",
            "observedat",
            "receivedat",
            "createdat",
            "lastupdate",
            "updatedat",
            "datetimeutc",
        ),
        *(
            "time",
            "ts",
            "t",
            "epoch",
            "unixtime",
            "zeitstempel",
            "zeitpunkt",
            "zeit",
            "datumzeit",
            "datum",
            "date",
            "when",
        ),
    ),
    "lon": (
        *("longitude", "lon", "lng", "long", "locationlong", "locationlon", "positionlongitude", "gpslongitude"),
        *(
            "gpslon",
            "gpslng",
            "lond",
            "londd",
            "longitudedd",
            "laenge",
            "länge",
            "längengrad",
            "laengengrad",
            "longitud",
        ),
        *("xwgs84", "xcoord", "x"),
    ),
    "lat": (
        *("latitude", "lat", "locationlat", "positionlatitude", "gpslatitude", "gpslat", "latd", "latdd", "latitudedd"),
        *("breite", "breitengrad", "latitud", "ywgs84", "ycoord", "y"),
    ),
    "altitude": (
        *("altitude", "alt", "altbaro", "baroaltitude", "geoaltitude", "elevation", "ele", "height", "höhe", "hoehe"),
    ),
}
# These are often numbers of rows.
GENERAL_KEYS = ("id", "key", "uuid")
# Names of properties, without their units, by the words of columns.
_PROPERTIES = {
    "speed": (
        *("speed", "sog", "groundspeed", "gs", "velocity", "speedoverground", "geschwindigkeit", "tempo", "fahrt"),
        *("knots", "kmh", "kph", "mph"),
    ),
    "course_deg": ("course", "cog", "courseoverground", "track", "bearing", "azimuth", "kurs"),
    "heading_deg": ("heading", "hdg", "trueheading"),
    "vertical_rate": ("verticalrate", "verticalspeed", "climbrate", "baroaltituderate"),
}
_OF_WORD = {word: name for name, words in _PROPERTIES.items() for word in words}
# What speeds over ground are in where their column does not say it.
_KNOTS = ("sog", "speedoverground")
_UNITS = {
    "knots": ("kn", "kt", "kts", "knot", "knots", "knoten"),
    "kmh": ("kmh", "kph", "kmph", "kmhr"),
    "mph": ("mph", "mih"),
    "mps": ("mps", "ms", "msec", "mpersec"),
    "feet_per_min": ("fpm", "ftmin", "ftpermin"),
    "feet": ("ft", "feet", "foot"),
    "metres": ("m", "meter", "meters", "metre", "metres"),
    "km": ("km", "kilometers", "kilometres"),
    "nautical_miles": ("nm", "nmi", "nauticalmiles"),
    "degrees": ("deg", "degree", "degrees", "grad"),
}
_UNIT_OF = {word: unit for unit, words in _UNITS.items() for word in words}
# How the name of a property ends that is in the SI unit of a unit.
_ENDS = dict.fromkeys(("knots", "kmh", "mph", "mps", "feet_per_min"), "mps")
_ENDS |= dict.fromkeys(("feet", "metres", "km", "nautical_miles"), "m") | {"degrees": "deg"}
_BRACKETS = re.compile(r"[\[(<{]([^\])>}]*)[\])>}]")
# Numbers with these endings are names: sums of them mean nothing, and zeros at their beginning something.
_CODES = ("id", "imo", "mmsi", "code", "number", "nr", "no", "phone", "zip", "route", "line", "type", "status")


def words_of(name: str) -> str:
    """Return the letters and digits of a column's name, without its unit.

    Examples
    --------
    >>> words_of("# Timestamp"), words_of("Speed [km/h]"), words_of("alt_ft"), words_of("location-long")
    ('timestamp', 'speed', 'alt', 'locationlong')
    """
    plain = _BRACKETS.sub("", name)
    parts = [part for part in re.split(r"[\W_]+", plain.lower()) if part]
    if len(parts) > 1 and parts[-1] in _UNIT_OF:
        parts = parts[:-1]
    return "".join(parts)


def unit_of(name: str) -> str | None:
    """Return the unit that a column's name says, or None.

    Examples
    --------
    >>> unit_of("Speed [km/h]"), unit_of("alt_ft"), unit_of("sog"), unit_of("m"), unit_of("delay_ms")
    ('kmh', 'feet', 'knots', None, None)
    """
    for told in _BRACKETS.findall(name):
        if (unit := _UNIT_OF.get(re.sub(r"[\W_]+", "", told.lower()))) is not None:
            return unit
    parts = [part for part in re.split(r"[\W_]+", name.lower()) if part]
    if parts and parts[-1] in _UNIT_OF and (len(parts) > 1 or parts[-1] in _OF_WORD):
        # Milliseconds are written so, too.
        return None if parts[-1] == "ms" and words_of(name) not in _OF_WORD else _UNIT_OF[parts[-1]]
    return "knots" if words_of(name) in _KNOTS else None


def is_code(name: str) -> bool:
    """Tell whether the numbers of a column are rather names, such as those of ships or routes."""
    parts = [part for part in re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) if part]
    return bool(parts) and parts[-1] in _CODES


def property_of(name: str, numeric: bool) -> str | dict[str, Any]:
    """Return the property that a column becomes: its name, and for a number its unit.

    Examples
    --------
    >>> property_of("SOG", True), property_of("Speed (km/h)", True)
    ({'name': 'speed_mps', 'unit': 'knots'}, {'name': 'speed_mps', 'unit': 'kmh'})
    >>> property_of("Fuel level", True), property_of("Ship name", False)
    ({'name': 'fuel_level', 'unit': 'number'}, 'ship_name')
    """
    plain = "_".join(part for part in re.split(r"[\W_]+", _BRACKETS.sub("", name).lower()) if part) or name
    if not numeric:
        return plain
    unit, known = unit_of(name), _OF_WORD.get(words_of(name))
    if known and known.endswith("_deg"):
        return {"name": known, "unit": "degrees"}
    if unit is None:
        return {"name": known or plain, "unit": "number"}
    if known is None and len(parts := plain.split("_")) > 1 and parts[-1] in _UNIT_OF:
        plain = "_".join(parts[:-1])
    return {"name": f"{known or plain}_{_ENDS[unit]}", "unit": unit}
