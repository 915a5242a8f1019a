"""Read queries of a sketch as text like SQL: into the JSON document of a plan.

The parser is LALR: it does not recurse, and its time grows with the length of the text, whatever the text is.

References
----------
Synopsis (2017), section 3.5: queries in a format like SQL.
"""

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from streaming.errors import InvalidPlan
from streaming.kinds.sketch.asks import QUESTIONS
from streaming.kinds.sketch.grammar import GRAMMAR, WORDS
from streaming.language import gettext, thousands

MAX_CHARACTERS = 100_000
# What a term of the grammar becomes: the token that it begins with, for messages, and the value.
Read = tuple[Token, Any]
Numbers = list[float]
Bounds = list[float | None]
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}


def document_of(text: str) -> dict[str, Any]:
    """Return the JSON document of the plan that a text describes; `SketchKind.parse` reads it.

    Parameters
    ----------
    text : str
        See docs/sketch-queries.md.

    Raises
    ------
    InvalidPlan
        If the text is too long or breaks the grammar. The message says in which line and column, both counted from 1,
        what is expected there, and what the text has.

    Examples
    --------
    >>> document_of("SELECT mean(temp) FROM weather WHERE wind > 3 ONCE")["ranges"]
    [{'feature': 'wind', 'above': 3}]
    >>> document_of("SELECT mean(temp) FRM weather")
    Traceback (most recent call last):
        ...
    streaming.errors.InvalidPlan: line 1, column 19: FROM or a comma is expected; got FRM
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidPlan(
            "a query must have at most %(max_characters)s characters; got %(count)s",
            max_characters=thousands(MAX_CHARACTERS),
            count=thousands(len(text)),
        )
    try:
        document: Any = _parser().parse(text)
    except UnexpectedToken as error:
        offset = len(text) if error.token.type == "$END" else error.token.start_pos
        raise _unexpected(text, offset, error.accepts or error.expected) from None
    except UnexpectedCharacters as error:
        # The constructor sets the offset, which the class declares as None.
        raise _unexpected(text, error.pos_in_stream, error.allowed) from None  # type: ignore[arg-type]
    return document


@functools.cache
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", transformer=_Documents(), maybe_placeholders=False)


def _unexpected(text: str, offset: int, expected: Iterable[str]) -> InvalidPlan:
    """Return the error about what the text has at an offset, where terminals of the grammar are expected."""
    words = sorted({gettext(WORDS[terminal]) for terminal in expected})
    wanted = gettext(" or ").join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or gettext(
        "something else"
    )
    got = text[offset:].split(None, 1)[0][:30] if text[offset:].strip() else gettext("the end")
    line = text.count("\n", 0, offset) + 1
    return _misplaced(
        line,
        offset - (text.rfind("\n", 0, offset) + 1) + 1,
        gettext("%(wanted)s is expected; got %(got)s") % {"wanted": wanted, "got": got},
    )


def _misplaced(line: int | None, column: int | None, words: str) -> InvalidPlan:
    """Return the error about a place in a text; line and column are counted from 1."""
    return InvalidPlan("line %(line)s, column %(column)s: %(words)s", line=line, column=column, words=words)


def _twice(token: Token, words: str) -> InvalidPlan:
    return _misplaced(
        token.line, token.column, gettext("%(words)s must be given once; got it twice") % {"words": words}
    )


@v_args(inline=True)
class _Documents(Transformer):
    """Makes the JSON document of a plan from its text."""

    def start(self, asks: list[dict[str, Any]], stream: Read, *parts: dict[str, Any]) -> dict[str, Any]:
        document = {"stream": stream[1], "kind": "sketch", "ask": asks}
        for part in parts:
            document |= part
        return document

    def everything(self, _: Token) -> list[dict[str, Any]]:
        return [{"question": "select"}]

    def asks(self, *asks: dict[str, Any]) -> list[dict[str, Any]]:
        return list(asks)

    def ask(self, question: Token, *arguments: Any) -> dict[str, Any]:
        if question.lower() not in QUESTIONS:
            raise _misplaced(
                question.line,
                question.column,
                gettext("one of %(questions)s is expected; got %(question)s")
                % {"questions": ", ".join(QUESTIONS), "question": question},
            )
        document: dict[str, Any] = {"question": question.lower()}
        for argument in arguments:
            if isinstance(argument, tuple):
                _add_argument(document, *argument)
        return document

    def feature(self, name: Read) -> tuple[Token, str, str]:
        return name[0], "features", name[1]

    def option(self, key: Token, value: Any) -> tuple[Token, str, Any]:
        return key, str(key), value[1] if isinstance(value, tuple) else value

    def literal(self, value: Read) -> tuple[Token, str, Any]:
        return value[0], "text" if value[0].type == "TEXT" else "value", value[1]

    def word(self, token: Token) -> str:
        return str(token)

    def list(self, *items: Read) -> list[Any]:
        return [item[1] for item in items]

    def where(self, *conditions: Read) -> dict[str, Any]:
        return _selection(conditions)

    def against(self, *conditions: Read) -> dict[str, Any]:
        return {"other": _selection(conditions)}

    def confidence(self, number: Read) -> dict[str, Any]:
        return {"confidence": number[1]}

    def once(self) -> dict[str, Any]:
        return {"once": True}

    def within(self, token: Token, place: dict[str, Any]) -> Read:
        return token, place

    def polygon(self, *vertices: Numbers) -> dict[str, Any]:
        return {"polygon": list(vertices)}

    def box(self, lo: Bounds, hi: Bounds) -> dict[str, Any]:
        return {"area": {"lo": lo, "hi": hi}}

    def vertex(self, *numbers: Read) -> Numbers:
        return [number[1] for number in numbers]

    def corner(self, *bounds: tuple[Token | None, float | None]) -> Bounds:
        return [bound[1] for bound in bounds]

    def nothing(self) -> tuple[None, None]:
        return None, None

    def times(self, *parts: Read) -> Read:
        ranges = [part for part in parts if part[0].type == "TIME"]
        return ranges[0][0], {"time": {"ranges": [entry for _, entry in ranges]} | _zone(parts[len(ranges) :])}

    def from_to(self, token: Token, start: Read, end: Read) -> Read:
        return token, {"from": start[1], "to": end[1]}

    def from_on(self, token: Token, _: Token, start: Read) -> Read:
        return token, {"from": start[1]}

    def until(self, token: Token, _: Token, end: Read) -> Read:
        return token, {"to": end[1]}

    def last(self, token: Token, number: Read, unit: Token, *zone: Read) -> Read:
        last_s = number[1] * _SECONDS[unit.lower().removesuffix("s")]
        return token, {"time": {"last_s": last_s} | _zone(zone)}

    def daily(self, token: Token, start: Read, end: Read, *zone: Read) -> Read:
        return token, {"time": {"daily": {"from": start[1], "to": end[1]}} | _zone(zone)}

    def anytime(self, token: Token, *zone: Read) -> Read:
        return token, {"time": _zone(zone)}

    def zone(self, text: Read) -> Read:
        return text

    def above(self, name: Read, comparison: Token, number: Read) -> Read:
        return name[0], _bounded(name, **{"above" if comparison == ">" else "lo": number[1]})

    def below(self, name: Read, comparison: Token, number: Read) -> Read:
        return name[0], _bounded(name, **{"below" if comparison == "<" else "hi": number[1]})

    def between(self, name: Read, low: Read, high: Read) -> Read:
        return name[0], _bounded(name, lo=low[1], hi=high[1])

    def equal(self, name: Read, number: Read) -> Read:
        return name[0], _bounded(name, lo=number[1], hi=number[1])

    def plain(self, token: Token) -> Read:
        return token, str(token)

    def quoted(self, token: Token) -> Read:
        return token, token[1:-1].replace('""', '"')

    def number(self, token: Token) -> Read:
        return token, int(token) if token.lstrip("+-").isdecimal() else float(token)

    def text(self, token: Token) -> Read:
        return token, token[1:-1].replace("''", "'")


def _zone(texts: Sequence[Read]) -> dict[str, Any]:
    """Return the key `zone`, if a text for it is there."""
    return {"zone": texts[0][1]} if texts else {}


def _add_argument(document: dict[str, Any], token: Token, key: str, value: Any) -> None:
    """Add an argument of a question to its document."""
    if key == "features":
        document.setdefault(key, []).append(value)
    elif key in document:
        raise _twice(token, key)
    else:
        document[key] = value


def _bounded(name: Read, **bounds: float) -> dict[str, Any]:
    return {"ranges": {name[1]: bounds}}


def _selection(conditions: Iterable[Read]) -> dict[str, Any]:
    """Return what conditions select, as keys of a document."""
    selected: dict[str, Any] = {}
    ranges: dict[str, dict[str, float]] = {}
    for token, condition in conditions:
        ((key, value),) = condition.items()
        if key == "time":
            selected[key] = _merged(token, selected.get(key, {}), value)
        elif key == "ranges":
            ((feature, bounds),) = value.items()
            ranges[feature] = _merged(token, ranges.get(feature, {}), bounds)
        elif selected.keys() & {"area", "polygon"}:
            raise _twice(token, gettext("the place"))
        else:
            selected[key] = value
    listed = [{"feature": feature} | bounds for feature, bounds in ranges.items()]
    return selected | ({"ranges": listed} if listed else {})


def _merged(token: Token, some: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Return two objects as one, which may have the same key only with the same value."""
    for key in some.keys() & more.keys():
        if some[key] != more[key]:
            raise _twice(token, key)
    return some | more
