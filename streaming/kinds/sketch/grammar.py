"""The grammar of queries of a sketch as text, and the words for its terminals in messages."""

from streaming.language import gettext_noop

GRAMMAR = r"""
start: _SELECT asks _FROM name [where] [against] [confidence] [once]

asks: STAR -> everything | ask ("," ask)*
ask: NAME "(" [_argument ("," _argument)*] ")"
_argument: STAR | feature | option | literal
feature: name
option: NAME "=" value
literal: number | text
?value: number | text | NAME -> word | "(" item ("," item)* ")" -> list
?item: number | text | name

where: _WHERE _condition (_AND _condition)*
against: _AGAINST _other (_AND _other)*
_condition: _other | above | below | between | equal
_other: within | times | last | daily | anytime
confidence: _WITH _CONFIDENCE number
once: _ONCE

within: WITHIN "(" (polygon | box) ")"
polygon: _POLYGON "(" "(" vertex ("," vertex)* ")" ")"
box: _BOX "(" corner "," corner ")"
vertex: number number
corner: (number | nothing)+
nothing: _NULL

times: range [zone] | "(" range (_OR range)* ")" [zone]
range: TIME _BETWEEN text _AND text -> from_to
    | TIME LEAST text -> from_on
    | TIME LESS text -> until
last: TIME _IN _LAST number UNIT [zone]
daily: TIME _OF _DAY _BETWEEN text _AND text [zone]
anytime: _ANY TIME [zone]
zone: _ZONE text

above: name (MORE | LEAST) number
below: name (LESS | MOST) number
between: name _BETWEEN number _AND number
equal: name "=" number

name: NAME -> plain | QUOTED -> quoted
number: NUMBER
text: TEXT

_SELECT.2: /select(?![\w.:])/i
_FROM.2: /from(?![\w.:])/i
_WHERE.2: /where(?![\w.:])/i
_AGAINST.2: /against(?![\w.:])/i
_WITH.2: /with(?![\w.:])/i
_CONFIDENCE.2: /confidence(?![\w.:])/i
_ONCE.2: /once(?![\w.:])/i
_AND.2: /and(?![\w.:])/i
_OR.2: /or(?![\w.:])/i
_BETWEEN.2: /between(?![\w.:])/i
_IN.2: /in(?![\w.:])/i
_LAST.2: /last(?![\w.:])/i
_OF.2: /of(?![\w.:])/i
_DAY.3: /day(?![\w.:])/i
_ANY.2: /any(?=\s+time(?![\w.:]))/i
_ZONE.2: /zone(?![\w.:])/i
_POLYGON.2: /polygon(?![\w.:])/i
_BOX.2: /box(?![\w.:])/i
_NULL.2: /null(?![\w.:])/i
WITHIN.2: /within(?=\s*\()/i
TIME.2: /time(?![\w.:])/i
UNIT.2: /(second|minute|hour|day|week)s?(?![\w.:])/i
STAR: "*"
LEAST: ">="
MOST: "<="
MORE: ">"
LESS: "<"
NUMBER: /[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?/i
TEXT: /'([^']|'')*'/
QUOTED: /"([^"]|"")+"/
NAME: /[^\W\d][\w.:]*/
%ignore /\s+/
"""

_KEYWORDS = (
    *("SELECT", "FROM", "WHERE", "AGAINST", "WITH", "CONFIDENCE", "ONCE", "AND", "OR", "BETWEEN", "IN", "LAST"),
    *("OF", "DAY", "ANY", "ZONE", "POLYGON", "BOX", "NULL"),
)
WORDS = {
    **{f"_{word}": word for word in _KEYWORDS},
    "WITHIN": "WITHIN",
    "TIME": "TIME",
    "UNIT": gettext_noop("a unit such as HOURS"),
    "STAR": "*",
    "LPAR": "(",
    "RPAR": ")",
    "LEAST": ">=",
    "MOST": "<=",
    "MORE": ">",
    "LESS": "<",
    "EQUAL": "=",
    "COMMA": gettext_noop("a comma"),
    "$END": gettext_noop("the end"),
    "NUMBER": gettext_noop("a number"),
    "TEXT": gettext_noop("a text in single quotes"),
    "NAME": gettext_noop("a name"),
    "QUOTED": gettext_noop("a name"),
}
