"""Small feeds of every kind, and the ways to feed them."""

import bz2
import gzip
import itertools
from collections import Counter

import orjson
import pyarrow as pa
from google.transit import gtfs_realtime_pb2 as gtfs

from streaming.decoders import make_decoder

NOW_US = 1_700_000_000_000_000

AIS = b"""\\g:1-2-73874,s:r003669945,c:1384257600*00\\\
!AIVDM,2,1,1,B,53uRcl02<VQA<A5B22098U=@tj2222222222220N3`?5540Ht@4jhAiC,0*7B\r
\\g:2-2-73874*12\\!AIVDM,2,2,1,B,`88888888888880,2*7E\r
$PGHP,1,2013,11,12,12,0,0,11,219,,2190067,1,62*26
!BSVDM,1,1,,A,13@:`L001N0ded0O6Fp8wW<00<0t,0*62
!AIVDM,1,1,,B,,0*25
!AIVDM,1,1,,A,144gjIP0085KKPQHMPjT81Sb1PSL,0*22,1328133720087
\\c:1420030798*00\\!BSVDM,1,1,,B,17PCie0P00:;2MmqtCvQ;OwL0400,0*7C
!BSVDM,1,1,,A,33ugwH0Oi>0m>;<Q3UwHL6p801v@,0*53
!BSVDM,1,1,,A,33ugwH0Oi>0m>;<Q3UwHL6p801v@,0*54
$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47
"""

SBS = b"""\
MSG,3,111,11111,A955D1,111111,2022/09/23,11:27:16.635,2022/09/23,11:27:16.596,,40025,,,48.43941,9.71403,,,,,,0\r
MSG,4,111,11111,A955D1,111111,2022/09/23,11:27:17.635,2022/09/23,11:27:17.596,,,451.0,90.5,,,-64,,,,,0\r
MSG,1,111,11111,A955D1,111111,2022/09/23,11:27:18.635,2022/09/23,11:27:18.596,DLH8JW  ,,,,,,,,,,,0\r
MSG,8,111,11111,A955D1,111111,2022/09/23,11:27:19.635,2022/09/23,11:27:19.596,,,,,,,,,,,,0\r
MSG,6,111,11111,4CA849,111111,2022/09/23,11:27:20.644,2022/09/23,11:27:20.597,,,,,,,,1000,0,0,0,0\r
MSG,3,111,11111,4CA849,111111,2022/09/23,11:27:21.635,2022/09/23,11:27:21.596,,36000,,,95.0,9.71403,,,,,,0\r
STA,,5,179,400AE7,10103,2008/11/28,14:58:51.153,2008/11/28,14:58:51.153,RM\r
"""

AIRCRAFT_JSON = orjson.dumps(
    {
        "now": 1700000000.5,
        "aircraft": [
            {
                "hex": "3C6444",
                "flight": "DLH8JW  ",
                "lat": 47.5,
                "lon": 8.5,
                "alt_baro": 35000,
                "alt_geom": 35500,
                "gs": 440.0,
                "track": 324.3,
                "baro_rate": 960,
                "squawk": "1000",
                "category": "A3",
                "seen_pos": 1.5,
            },
            {"hex": "~2a1b3c", "lat": 47.0, "lon": -172.0, "alt_baro": "ground"},
            {"hex": "abcdef", "flight": "NOPOS"},
            {"hex": "bad001", "lat": 91.0, "lon": 8.0},
            {"lat": 1, "lon": 2},
        ],
    }
)


def gtfs_realtime() -> bytes:
    """Return a feed of two vehicles with a position and one without."""
    feed = gtfs.FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = 1_700_000_000
    first, second, third = feed.entity.add(id="e1"), feed.entity.add(id="e2"), feed.entity.add(id="e3")
    first.vehicle.vehicle.id, first.vehicle.vehicle.label = "1355", "Bus 1355"
    first.vehicle.trip.route_id, first.vehicle.timestamp = "29", 1_700_000_007
    first.vehicle.position.latitude, first.vehicle.position.longitude = 38.25, -85.75
    first.vehicle.position.bearing, first.vehicle.position.speed = 284, 4.5
    first.vehicle.current_status = gtfs.VehiclePosition.STOPPED_AT
    first.vehicle.occupancy_status = gtfs.VehiclePosition.MANY_SEATS_AVAILABLE
    second.vehicle.trip.trip_id = "e2"
    second.vehicle.position.latitude, second.vehicle.position.longitude = 38.5, -85.5
    third.vehicle.vehicle.id = "nowhere"
    return feed.SerializeToString()


GTFS_REALTIME = gtfs_realtime()

GEOJSON_LINES = b"""\
{"type":"Feature","id":7,"geometry":{"type":"Point","coordinates":[-170,60,12.5]},"properties":{"t":1700000000}}
{"type":"Feature","geometry":{"type":"LineString","coordinates":[[9,47],[10,48]]},\
"properties":{"id":"road","t":"2023-11-14T22:13:20Z"}}

{"type":"Feature","geometry":{"type":"Point","coordinates":[9,97]},"properties":{"id":"beyond","t":1700000000}}
{"type":"Feature","geometry":null,"properties":{"id":"nowhere","t":1700000000}}
{"type":"Feature","geometry":{"type":"Point","coordinates":[9,47]},"properties":{"id":"timeless"}}
{"type":"Feature","geometry":{"type":"Polygon","coordinates":[[[0,0]]]},"properties":{"id":"broken","t":1700000000000}}
{"type":"Feature","geometry":{"type":"Point","coordinates":[9,47]},"properties":{"id":"caf\xc3\xa9","t":1700000000000,"w":[1,{"a":2}]}}
not json
"""

CSV = b'''id,when,x,y,z,speed,name,heading\r
a,2023-11-14T22:13:20Z,8.5,47.5,1000,10,Caf\xc3\xa9,511\r
b,2023-11-14T23:13:20.25+01:00,-171.5,-47.5,,,"x, ""y""",90\r
,2023-11-14T22:13:20Z,8.5,47.5,,,,\r
c,yesterday,8.5,47.5,,,,\r
d,2023-11-14 22:13:20,8.5,,,,,\r
e,2023-11-14T22:13:20Z,8.5,97.5,,,,\r
f,2023-11-14T22:13:20Z,0,0,,,,\r
g,2023-11-14T22:13:20Z,x,47.5,,,,\r
h,2023-11-14T22:13:20Z,8.5\r
i,2023-11-14T22:13:20Z,8.5,47.5,1e3,fast, I ,\xff\r
j,2023-11-14T22:13:20Z,8.5,47.5,1e3,fast,"I,1\r
k,2023-11-14T22:13:20,8.5,47.5,1e3,fast, K ,nan\r
'''

CSV_OPTIONS = {
    "kind": "csv",
    "columns": {"key": "id", "time": "when", "lon": "x", "lat": "y", "altitude": "z"},
    "altitude_unit": "feet",
    "properties": {
        "speed": {"name": "speed_mps", "unit": "knots"},
        "name": "name",
        "heading": {"name": "heading_deg", "unit": "degrees"},
    },
    "null_values": {"heading": ["511"]},
}

# Definition, bytes, how many elements, and how many malformed pieces by reason.
FEEDS = {
    "ais": ({"kind": "ais"}, AIS, 4, {"empty payload": 1, "checksum": 1}),
    "sbs": ({"kind": "sbs"}, SBS, 3, {"position out of range": 1}),
    "aircraft_json": (
        {"kind": "aircraft_json"},
        AIRCRAFT_JSON,
        2,
        {"position out of range": 1, "aircraft without hex": 1},
    ),
    "gtfs_realtime": ({"kind": "gtfs_realtime"}, GTFS_REALTIME, 2, {}),
    "geojson": (
        {"kind": "geojson", "time": "t"},
        GEOJSON_LINES,
        3,
        {"position out of range": 1, "feature without geometry": 1, "time": 1, "geometry": 1, "not JSON": 1},
    ),
    "geojson_sequence": (
        {"kind": "geojson", "time": "t", "framing": "sequence"},
        b"\x1e" + GEOJSON_LINES.replace(b"\n\n", b"\n").replace(b'\n{"', b'\n\x1e{\n"').replace(b"\nnot", b"\n\x1enot"),
        3,
        {"position out of range": 1, "feature without geometry": 1, "time": 1, "geometry": 1, "not JSON": 1},
    ),
    "csv": (
        CSV_OPTIONS,
        CSV,
        3,
        {
            "no key": 1,
            "time": 1,
            "no position": 2,
            "position out of range": 1,
            "null island": 1,
            "number of columns": 1,
            "encoding": 1,
            "quotes": 1,
        },
    ),
}


def decode(decoder, pieces, finish=True):
    """Return the elements of all pieces as one table, and the malformed pieces counted by reason."""
    parts = [decoder.feed(piece, NOW_US) for piece in pieces]
    parts += [decoder.finish(NOW_US)] if finish else []
    malformed = Counter(fault.reason for part in parts for fault in part.malformed)
    return pa.concat_tables([part.elements for part in parts]), malformed


def decode_whole(definition, feed, stream="s"):
    """Return elements and malformed pieces of a feed given at once to a new decoder."""
    return decode(make_decoder(definition, stream), [feed])


def cut(feed, places):
    """Return a feed in pieces."""
    places = [0, *sorted(place % (len(feed) + 1) for place in places), len(feed)]
    return [feed[start:end] for start, end in itertools.pairwise(places)]


def read_recording(path) -> bytes:
    """Return the bytes of a recording, unpacked."""
    unpack = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix, open)
    with unpack(path, "rb") as recording:
        return recording.read()


def properties_of(elements, key):
    """Return the properties of the last element with a key."""
    rows = [row for row in elements.to_pylist() if row["key"] == key]
    return orjson.loads(rows[-1]["properties"])
