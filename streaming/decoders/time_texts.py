"""Read the times that feeds write as text, in the many forms that there are."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from streaming.decoders.options import DecoderOptions, option
from streaming.decoders.units import LATEST_US, MICROSECONDS, epoch_us
from streaming.errors import InvalidOptions
from streaming.time_zones import is_time_zone

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
# Texts that Arrow reads, with a zone; it refuses a zone behind a date alone.
_ZONED = r"(Z|z|[+-]\d\d(:?\d\d)?)$"
# Numbers that are epochs beyond doubt: in s, ms, us and ns. Those of 8, 12, 14 and 17 digits may be compact dates.
_EPOCHS = r"^(\d{9,11}|\d{13}|\d{16}|\d{19})(\.\d*)?$"
_NUMERAL = re.compile(r"\d{9,}([.,]\d*)?|\d[.,]?\d*[eE]\+?\d{1,2}", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?(\d*))?")
_WEEKDAY = re.compile(r"^(?:MON|TUE|WED|THU|FRI|SAT|SUN)[A-Z]*[.,]?\s*")
# The year at the end, as `date` and ctime write it: NOV 27 03:00:00 UTC 2026.
_YEAR_LAST = re.compile(r"^([A-Z]{3}) +(\d{1,2}) ([\d:.]+)( [A-Z]{3,4})? (\d{4})$")
_FORM = re.compile(
    r"""(?:(?P<y1>\d{4})(?P<s1>[-/.: ])(?P<m1>\d{1,2}|[A-Z]{3,9})(?P=s1)(?P<d1>\d{1,2})
        |(?P<y2>\d{4})(?P<m2>\d\d)(?P<d2>\d\d)
        |(?P<d3>\d{1,2})(?:ST|ND|RD|TH)?[-/.\s]*(?P<m3>[A-Z]{3,9})[-/.,\s]*(?P<y3>\d{4})
        |(?P<m4>[A-Z]{3,9})\.?\ *(?P<d4>\d{1,2})(?:ST|ND|RD|TH)?,?\ +(?P<y4>\d{4})
        |(?P<a>\d{1,2})(?P<s5>[-/.])(?P<b>\d{1,2})(?P=s5)(?P<y5>\d{4}|\d\d))
        (?:(?:T|[\s,;:_@-]+)\s*(?P<hour>\d{1,2})(?:[:.]?(?P<minute>\d\d)(?:[:.]?(?P<second>\d\d)(?:[.,](?P<part>\d+))?)?)?
        \s*(?P<half>[AP]\.?M\.?)?)?
        \s*(?P<zone>Z|UTC|GMT|UT|(?:UTC|GMT)?\s*(?P<sign>[+-])(?P<zh>\d\d?)(?::?(?P<zm>\d\d))?(?:\s*[A-Z]{1,5})?)?
        (?:\s*\([^)]*\)|\[[^\]]*\]|\s+M=\S+)?""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class LocalTimeOptions(DecoderOptions):
    """Options of every decoder whose times may be local ones."""

    utc_offset_s: float = option(0.0, "local time minus UTC, for times that do not say it")
    time_zone: str = option("", "their time zone, an IANA name such as Europe/Helsinki; empty: utc_offset_s")

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        if self.time_zone and not is_time_zone(self.time_zone):
            raise InvalidOptions(
                "time_zone must be an IANA name such as Europe/Helsinki; got %(time_zone)s",
                time_zone=repr(self.time_zone),
            )


@dataclass(frozen=True)
class TimeTexts:
    """Reads times in any of many forms: dates with and without a time of day, in any zone, and epochs.

    Second 60 is the first of the next minute, and hour 24 the first of the next day. A local time that occurs twice
    when summer time ends is the first of both; one that never occurs when summer time begins is the moment of the
    change.

    Parameters
    ----------
    utc_offset_s : float, optional
        Local time minus UTC, for texts that do not state it.
    time_zone : str, optional
        The IANA name of the zone of such texts; it goes before `utc_offset_s`.
    order : {"", "day_first", "month_first"}, optional
        How 03/04/2026 is read; by default only 03.04.2026 is, with the day first.

    Examples
    --------
    >>> [TimeTexts().us(text) for text in ("1970-01-01 00:00:01 UTC", "1970/1/1", "03/04/2026", "1700000000")]
    [1000000, 0, None, 1700000000000000]
    """

    utc_offset_s: float = 0.0
    time_zone: str = ""
    order: str = ""

    def us(self, text: str) -> int | None:
        """Return microseconds since 1970 of one text; None if it is no time between 1970 and 2200."""
        text = text.strip()
        if text[-1:] == "Z" and (time_us := _zulu_us(text)) is not None:
            return time_us
        found = _numeral(text) if text[4:5] != "-" and _NUMERAL.fullmatch(text) else self._moment(text)
        if found is None:
            return None
        time_us = found if isinstance(found, int) else self._utc_us(*found)
        return time_us if 0 <= time_us < LATEST_US else None

    def array_us(self, texts: pa.Array) -> pa.Array:
        """Return int64 microseconds since 1970 of texts; null where one is no time between 1970 and 2200."""
        try:
            times = self._by_arrow(texts)
        except pa.ArrowInvalid:
            if pc.all(pc.match_substring_regex(texts, _EPOCHS), min_count=0).as_py():
                numbers = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
                return pa.array(map(_epoch_or_none, numbers), pa.int64())
            distinct = texts.dictionary_encode()
            read = pa.array(map(self.us, distinct.dictionary.to_pylist()), pa.int64())
            return read.take(distinct.indices)
        in_range = pc.and_(pc.greater_equal(times, 0), pc.less(times, LATEST_US))
        return pc.if_else(in_range, times, None)

    def _by_arrow(self, texts: pa.Array) -> pa.Array:
        zoned = pc.and_(pc.match_substring(texts, ":"), pc.match_substring_regex(texts, _ZONED))
        with_zone = pc.cast(pc.if_else(zoned, texts, None), pa.timestamp("us", "UTC"))
        without = pc.cast(pc.if_else(zoned, None, texts), pa.timestamp("us"))
        return pc.coalesce(pc.cast(with_zone, pa.int64()), self._local_us(without))

    def _local_us(self, local: pa.Array) -> pa.Array:
        """Return int64 microseconds since 1970 of local times, an array or a scalar."""
        if self.time_zone:
            told = pc.assume_timezone(local, self.time_zone, ambiguous="earliest", nonexistent="latest")
            return pc.cast(told, pa.int64())
        return pc.subtract(pc.cast(local, pa.int64()), round(self.utc_offset_s * MICROSECONDS))

    def _utc_us(self, moment: datetime, offset: timedelta | None) -> int:
        if offset is not None:
            return _since_us(moment - offset)
        if self.time_zone:
            return self._local_us(pa.scalar(moment, pa.timestamp("us"))).as_py()
        return _since_us(moment) - round(self.utc_offset_s * MICROSECONDS)

    def _moment(self, text: str) -> tuple[datetime, timedelta | None] | None:
        """Return the date and time that a text says, and its offset from UTC if it says one."""
        try:
            moment = datetime.fromisoformat(text)
            return (moment, None) if moment.tzinfo is None else (moment.replace(tzinfo=None), moment.utcoffset())
        except ValueError:
            pass
        form = _FORM.fullmatch(_YEAR_LAST.sub(r"\5-\1-\2 \3\4", _WEEKDAY.sub("", text.upper())))
        if form is None:
            return None
        try:
            return self._day(form) + _time_of_day(form), _offset(form)
        except (ValueError, OverflowError):
            return None

    def _day(self, form: re.Match) -> datetime:
        """Return the day that a text says; raise ValueError if there is none, or it may be one of two."""
        if form["a"]:
            if not self.order and form["s5"] != ".":
                raise ValueError("which is the day?")
            day, month = (form["b"], form["a"]) if self.order == "month_first" else (form["a"], form["b"])
            year = int(form["y5"])
            return datetime(year if year > 99 else year + (2000 if year < 70 else 1900), int(month), int(day))
        year, month, day = next((form[f"y{n}"], form[f"m{n}"], form[f"d{n}"]) for n in range(1, 5) if form[f"y{n}"])
        return datetime(int(year), int(month) if month.isdigit() else _MONTHS.index(month[:3]) + 1, int(day))


def _zulu_us(text: str) -> int | None:
    """Return microseconds since 1970 of a time as most feeds write it, 2026-11-27T03:00:00Z; None for others."""
    try:
        time_us = (datetime.fromisoformat(text) - _EPOCH_UTC) // _MICROSECOND
    except (ValueError, TypeError):  # a local time cannot be compared with one in UTC
        return None
    return time_us if 0 <= time_us < LATEST_US else None


def _since_us(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _epoch_or_none(number: float) -> int | None:
    return None if number != number else epoch_us(number)


def _numeral(text: str) -> tuple[datetime, timedelta | None] | int | None:
    """Return the time of a number: a compact date where it has as many digits as one, else an epoch."""
    text = text.replace(",", ".")
    whole, _, part = text.partition(".")
    if len(whole) in (12, 14, 17) and (form := _COMPACT.fullmatch(whole)) and whole[:2] in ("19", "20", "21"):
        year, month, day, hour, minute, second = (int(group or 0) for group in form.groups()[:6])
        try:
            moment = datetime(year, month, day, hour, minute)
        except ValueError:
            return None
        return moment + timedelta(seconds=second, microseconds=_microseconds((form[7] or "") + part)), None
    return epoch_us(float(text))


def _microseconds(digits: str) -> int:
    return int(digits[:6].ljust(6, "0")) if digits else 0


def _time_of_day(form: re.Match) -> timedelta:
    """Return the time since midnight; raise ValueError if it is none."""
    hour, minute, second = (int(form[name] or 0) for name in ("hour", "minute", "second"))
    if form["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("hours of half a day are 1 to 12")
        hour = hour % 12 + (12 if form["half"][0] == "P" else 0)
    if minute > 59 or second > 60 or hour > 24 or (hour == 24 and minute + second):
        raise ValueError("no time of day")
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=_microseconds(form["part"] or ""))


def _offset(form: re.Match) -> timedelta | None:
    """Return local time minus UTC, or None if the text does not say it; raise ValueError if it is none."""
    if form["zone"] is None:
        return None
    if not form["sign"]:
        return timedelta(0)
    hours, minutes = int(form["zh"]), int(form["zm"] or 0)
    if hours > 24 or minutes > 59:
        raise ValueError("no offset")
    return (1 if form["sign"] == "+" else -1) * timedelta(hours=hours, minutes=minutes)
