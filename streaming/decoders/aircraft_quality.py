"""How accurate the positions of aircraft are, and where they come from, by the fields of readsb and dump1090.

References
----------
RTCA DO-260B (2009), tables 2-69 (NIC) and A-15 (NACp); RTCA DO-260 (2000), table 2-11 (NUCp); readsb, README-json.md.
"""

from collections.abc import Mapping
from typing import Any

from streaming.decoders.properties import is_number

_MILE_M = 1852.0
# The radius that holds 95 of 100 positions, by NACp.
_NACP_M = {11: 3.0, 10: 10.0, 9: 30.0} | {
    code: round(miles * _MILE_M, 1)
    for code, miles in ((8, 0.05), (7, 0.1), (6, 0.3), (5, 0.5), (4, 1), (3, 2), (2, 4), (1, 10))
}
# The radius that holds the position for certain, by NIC.
_NIC_M = {11: 7.5, 10: 25.0, 9: 75.0} | {
    code: round(miles * _MILE_M, 1)
    for code, miles in ((8, 0.1), (7, 0.2), (6, 0.6), (5, 1), (4, 2), (3, 4), (2, 8), (1, 20))
}
# The radius that holds 95 of 100 positions, by NUCp, which was there before NACp and NIC.
_NUCP_M = {9: 3.0, 8: 10.0} | {
    code: round(miles * _MILE_M, 1)
    for code, miles in ((7, 0.05), (6, 0.1), (5, 0.25), (4, 0.5), (3, 1), (2, 5), (1, 10))
}
_CODES: tuple[tuple[str, Mapping[int, float]], ...] = (("nic", _NIC_M), ("nucp", _NUCP_M))
_SOURCES = ("adsb", "adsr", "tisb", "adsc", "mlat")


def quality(entry: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
    """Return the source of an aircraft's position, and its accuracy in metres, as far as they are known.

    Parameters
    ----------
    entry : mapping
        The aircraft.
    place : mapping
        What has its position: the aircraft, or its `lastPosition`.

    Examples
    --------
    >>> quality({"type": "adsb_icao"}, {"rc": 186})
    {'position_source': 'adsb', 'accuracy_m': 186}
    >>> quality({"mlat": ["lat", "lon"]}, {"rc": 186}), quality({}, {})
    ({'position_source': 'mlat'}, {})
    """
    source = _source(entry)
    # The codes are those of the aircraft's own position.
    accuracy_m = None if source == "mlat" else _accuracy_m(place)
    told: dict[str, Any] = {} if source is None else {"position_source": source}
    if accuracy_m is not None:
        told["accuracy_m"] = accuracy_m
    return told


def _source(entry: Mapping[str, Any]) -> str | None:
    for source in ("mlat", "tisb"):  # lists of the fields that come from there
        fields = entry.get(source)
        if fields and isinstance(fields, list) and "lat" in fields:
            return source
    kind = entry.get("type")
    if isinstance(kind, str):
        word = kind.partition("_")[0]
        return word if word in _SOURCES else None
    # Programs before there was a type have these codes of ADS-B positions alone.
    return "adsb" if "nucp" in entry or "nic" in entry else None


def _accuracy_m(place: Mapping[str, Any]) -> float | None:
    """Return the accuracy by NACp; else the radius of containment; else that by NIC, or NUCp; None if none is known."""
    code = place.get("nac_p")
    if isinstance(code, int) and code in _NACP_M:
        return _NACP_M[code]
    radius_m = place.get("rc")
    if is_number(radius_m) and radius_m > 0:
        return radius_m
    for name, radii_m in _CODES:
        code = place.get(name)
        if isinstance(code, int) and code in radii_m:
            return radii_m[code]
    return None
