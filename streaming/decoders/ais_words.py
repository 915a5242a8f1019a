"""Words for the codes of AIS (ITU-R M.1371-5, annex 8)."""

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
