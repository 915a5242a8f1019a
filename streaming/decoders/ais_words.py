"""Words for the codes of AIS (ITU-R M.1371-5, annex 8), and what its senders and positions are."""

from pyais.constants import NavAid

STATUS = (
    "under way using engine",
    "at anchor",
    "not under command",
    "restricted manoeuvrability",
    "constrained by her draught",
    "moored",
    "aground",
    "engaged in fishing",
    "under way sailing",
    "reserved for high-speed craft",
    "reserved for wing in ground",
    "towing astern",
    "pushing ahead",
    "reserved",
    "search and rescue transmitter",
    None,
)

_TYPE_BY_TENS = {2: "wing in ground", 4: "high-speed craft", 6: "passenger", 7: "cargo", 8: "tanker", 9: "other"}
_TYPE_BY_CODE = {
    30: "fishing",
    31: "towing",
    32: "towing",
    33: "dredging",
    34: "diving",
    35: "military",
    36: "sailing",
    37: "pleasure craft",
    50: "pilot",
    51: "search and rescue",
    52: "tug",
    53: "port tender",
    54: "anti-pollution",
    55: "law enforcement",
    58: "medical",
    59: "non-combatant",
}
SHIP_TYPE = {code: _TYPE_BY_CODE.get(code, _TYPE_BY_TENS.get(code // 10)) for code in range(20, 100)}

AID_TYPE = {int(aid): aid.name.lower().replace("_", " ") for aid in NavAid if int(aid)}

# The position of message 27 is in tenths of a minute, which are 185.2 m of latitude.
LONG_RANGE = "ais long range"
COARSE = {"position_source": LONG_RANGE, "accuracy_m": 185.2}
# By the flags of accuracy and of RAIM. With the first, ITU-R M.1371-5 (annex 8, table 50) promises 10 m. Without both,
# an uncorrected receiver gave the position, for which 30 m are assumed; with RAIM alone, the receiver expects more than
# 10 m, and 100 m are assumed.
EXACT = {
    (accuracy, raim): {"position_source": "ais", "accuracy_m": 10.0 if accuracy else 100.0 if raim else 30.0}
    for accuracy in (False, True)
    for raim in (False, True)
}
# By the seconds of the time stamp, which are less than 60 if a satellite receiver gave the position. How accurate an
# estimate of a person or of dead reckoning is, nobody knows.
UNTIMED = {
    60: {"position_source": "ais"},
    61: {"position_source": "ais manual"},
    62: {"position_source": "ais dead reckoning"},
    63: {"position_source": "ais inoperative"},
}

# What senders of ships' messages are by the first three digits of their MMSI (ITU-R M.585-9).
STARTS_AT = 1_000_000
SENDERS = (
    dict.fromkeys(range(10), "base station")
    | dict.fromkeys(range(800, 900), "handheld radio")
    | dict.fromkeys(range(980, 990), "auxiliary craft")
    | dict.fromkeys(range(990, 1000), "aid to navigation")
    | {111: "aircraft", 970: "search and rescue transmitter", 972: "man overboard", 974: "emergency beacon"}
)
EMERGENCIES = {SENDERS[start] for start in (970, 972, 974)}
# In an emergency, a beacon has the status "active"; when it is tested, "undefined". Behind the first three digits stand
# the two of its maker, of whom 00 is for tests.
TESTED = {14: False, 15: True}
TEST_MAKER = 0
