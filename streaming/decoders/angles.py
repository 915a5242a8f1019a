"""Read longitudes and latitudes in degrees, minutes and seconds, with letters for the hemisphere."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.columns import numbers

# The letters of each axis: east or north, and west or south.
HEMISPHERES = {"lon": ("E", "W"), "lat": ("N", "S")}
_FORM = re.compile(
    r"""(?P<sign>[+-])?\s*(?P<before>[A-Za-z])?\s*(?P<degrees>\d+(?:\.\d*)?)
        (?:\s*(?:[°º˚dD:\s-]|deg)\s*(?:(?P<minutes>\d+(?:\.\d*)?)
        (?:\s*(?:['’′´mM:\s-]|min)\s*(?:(?P<seconds>\d+(?:\.\d*)?)\s*(?:["”″]|''|’’|′′|sec)?)?)?)?)?
        \s*(?P<after>[A-Za-z])?""",
    re.VERBOSE,
)


# Written with letters for the units, of which s would be taken for south otherwise: 60d10m12s.
_WORDED = re.compile(r"(\d+)\s*(?:d|deg)\s*(\d+)\s*(?:m|min)\s*([\d.]+)\s*(?:s|sec)(?![A-Za-z])", re.IGNORECASE)


def degrees(texts: pa.Array, axis: str, decimal: str = ".") -> pa.Array:
    r"""Return texts as float64 degrees; null if a text is no angle.

    Parameters
    ----------
    texts : pyarrow.StringArray
    axis : {"lon", "lat"}
        Which letters may say the hemisphere.
    decimal : str, optional
        The decimal sign.

    Examples
    --------
    >>> degrees(pa.array(["60.5", "60°30'0\"N", "S 60 30", "60 30 E"]), "lat").to_pylist()
    [60.5, 60.5, -60.5, None]
    """
    values = numbers(texts, decimal)
    if values.null_count == texts.null_count:
        return values
    unread = pc.and_(pc.is_null(values), pc.is_valid(texts))
    distinct = pc.if_else(unread, texts, None).dictionary_encode()
    read = [_degrees(text.replace(decimal, "."), axis) for text in distinct.dictionary.to_pylist()]
    return pc.coalesce(values, pa.array(read, pa.float64()).take(distinct.indices))


def _degrees(text: str, axis: str) -> float | None:
    form = _FORM.fullmatch(_WORDED.sub(r"\1 \2 \3", text.strip().replace("\u2212", "-")))
    if form is None:
        return None
    letters = [form[name].upper() for name in ("before", "after") if form[name]]
    minutes, seconds = float(form["minutes"] or 0), float(form["seconds"] or 0)
    if len(letters) > 1 or (letters and form["sign"]) or minutes >= 60 or seconds >= 60:
        return None
    if letters and letters[0] not in HEMISPHERES[axis]:
        return None
    if (form["minutes"] and "." in form["degrees"]) or (form["seconds"] and "." in form["minutes"]):
        return None
    negative = form["sign"] == "-" or letters[:1] == [HEMISPHERES[axis][1]]
    value = (float(form["degrees"]) * 3600 + minutes * 60 + seconds) / 3600
    return -value if negative else value
