"""Times as feeds write them."""

import pyarrow as pa
import pytest

from streaming.decoders import make_decoder
from streaming.decoders.time_texts import TimeTexts
from streaming.errors import InvalidOptions
from tests.decoders.feeds import SBS, decode_whole

THREE_US = 1_795_748_400_000_000  # 2026-11-27 03:00:00 UTC
HOUR_US = 3_600_000_000

FORMS = {
    "2026-11-27 03:00:00 UTC": 0,
    "2026-11-27 03:00:00.658546381 +0000 UTC": 658_546,
    "2026-11-27 05:00:00 +0200 EET": 0,
    "2026-11-27T03:00:00.658546381Z": 658_546,
    "2026-11-27T03:00:00+0200": -2 * HOUR_US,
    "2026-11-27T03:00:00-02": 2 * HOUR_US,
    "2026-11-27T02:59:60Z": 0,
    "2026-11-26T24:00:00Z": -3 * HOUR_US,
    "2026-11-27": -3 * HOUR_US,
    "20261127": -3 * HOUR_US,
    "20261127T030000Z": 0,
    "20261127030000": 0,
    "202611270300": 0,
    "20261127030000250": 250_000,
    "2026-11-27T03:00Z": 0,
    "2026-11-27t03:00:00z": 0,
    "2026-11-27 03:00:00,25": 250_000,
    "2026/11/27 03:00:00": 0,
    "2026:11:27 03:00:00": 0,
    "27.11.2026 3:00": 0,
    "27 Nov 2026 03:00:00": 0,
    "27-NOV-26 03:00:00": None,
    "Nov 27, 2026 @ 03:00:00.250": 250_000,
    "2026-11-27T05:00:00+02:00[Europe/Helsinki]": 0,
    "Fri, 27 Nov 2026 03:00:00 GMT": 0,
    "Fri Nov 27 03:00:00 UTC 2026": 0,
    "Nov 27, 2026 3:00:00 AM": 0,
    "27/Nov/2026:05:00:00 +0200": 0,
    "1795748400": 0,
    "1795748400.25": 250_000,
    "1795748400250": 250_000,
    "1795748400250000": 250_000,
    "1795748400250000123": 250_000,
    "1.7957484E9": 0,
    "12345": None,
    "2026": None,
    "99999999": None,
    "27/11/2026 03:00:00": None,
    "2026-11-27 03:00:00 CET": None,
    "2026-11-27 03:00:61": None,
    "2026-02-30 03:00:00": None,
    "yesterday": None,
}


@pytest.mark.parametrize(("text", "after_us"), FORMS.items())
def test_a_time_is_read_in_the_form_in_which_it_is_written(text, after_us):
    right = None if after_us is None else THREE_US + after_us
    assert TimeTexts().us(text) == right
    for others in ([], ["2026-11-27T03:00:00Z"], ["nonsense"]):
        assert TimeTexts().array_us(pa.array([text, None, *others])).to_pylist()[:2] == [right, None]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("day_first", "27/11/2026 03:00:00"),
        ("day_first", "27-11-26 3:00 am"),
        ("day_first", "2026-11-27 03:00:00"),
        ("month_first", "11/27/2026 3:00:00 AM"),
    ],
)
def test_day_and_month_stand_in_the_order_that_is_said(order, text):
    assert TimeTexts(order=order).us(text) == THREE_US


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2026-07-01 12:00:00", "2026-07-01 10:00:00"),
        ("2026-12-01 12:00:00", "2026-12-01 11:00:00"),
        ("2026-10-25 02:30:00", "2026-10-25 00:30:00"),
        ("2026-03-29 02:30:00", "2026-03-29 01:00:00"),
        ("2026-07-01T12:00:00Z", "2026-07-01 12:00:00"),
    ],
)
def test_local_times_follow_summer_time(local, utc):
    forms, right = TimeTexts(time_zone="Europe/Berlin"), TimeTexts().us(utc)
    assert forms.us(local) == right
    assert forms.array_us(pa.array([local])).to_pylist() == [right]


def test_the_lines_of_a_receiver_have_its_local_time():
    told, zoned = (decode_whole(sbs, SBS)[0]["time_us"][0].as_py() for sbs in ({"kind": "sbs"}, ZONED_SBS))
    assert told - zoned == 2 * HOUR_US


ZONED_SBS = {"kind": "sbs", "time_zone": "Europe/Berlin"}


@pytest.mark.parametrize("kind", ["csv", "geojson", "sbs"])
def test_a_time_zone_that_there_is_not_is_refused(kind):
    with pytest.raises(InvalidOptions, match="time_zone must be an IANA name"):
        make_decoder({"kind": kind, "time_zone": "Mars/Olympus"}, "s")
