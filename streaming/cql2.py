"""Parse CQL2 text into a tree, or say in one sentence what is wrong with it and where.

The parser is LALR: it does not recurse, and its time grows with the length of the text, whatever the text is.

References
----------
OGC 21-065r2, Common Query Language (CQL2), 2024: Annex B, the text encoding; the tree is that of its JSON encoding.
"""

import functools
from typing import Any, TypeAlias

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken, v_args

from streaming.errors import InvalidPlan
from streaming.language import gettext_noop

MAX_CHARACTERS = 2_000

_GRAMMAR = r"""
start: _any

_any: any
?any: all | all (_OR all)+ -> disjunction
?all: not | not (_AND not)+ -> conjunction
?not: predicate | NOT not -> negation
?predicate: sum
    | sum COMPARISON sum -> comparison
    | sum LIKE sum -> comparison
    | sum NOT LIKE sum -> not_like
    | sum BETWEEN sum _AND sum -> between
    | sum NOT BETWEEN sum _AND sum -> not_between
    | sum IN _list -> member
    | sum NOT IN _list -> not_member
    | sum IS NULL -> null
    | sum IS NOT NULL -> not_null
_list: "(" sum ("," sum)* ")"
?sum: product | sum SUM product -> comparison
?product: power | product PRODUCT power -> comparison
?power: unary | power POWER unary -> comparison
?unary: atom | SUM unary -> signed
?atom: NUMBER -> number
    | TEXT -> text
    | QUOTED -> quoted
    | NAME -> name
    | TRUE -> true
    | FALSE -> false
    | NULL -> nothing
    | NAME "(" sum ("," sum)* ")" -> function
    | "(" any ")"

_OR.2: /or(?![\w.:])/i
_AND.2: /and(?![\w.:])/i
NOT.2: /not(?![\w.:])/i
LIKE.2: /like(?![\w.:])/i
BETWEEN.2: /between(?![\w.:])/i
IN.2: /in(?![\w.:])/i
IS.2: /is(?![\w.:])/i
NULL.2: /null(?![\w.:])/i
TRUE.2: /true(?![\w.:])/i
FALSE.2: /false(?![\w.:])/i
COMPARISON: "=" | "<>" | "!=" | "<=" | ">=" | "<" | ">"
SUM: "+" | "-"
PRODUCT: "*" | "/" | "%"
POWER: "^"
NUMBER: /(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?/i
TEXT: /'([^']|'')*'/
QUOTED: /"([^"]|"")+"/
NAME: /[^\W\d][\w.:]*/
%ignore /\s+/
"""
_VALUE = gettext_noop("a number, a text in single quotes, or the name of a property")
_OPERATOR = gettext_noop("an operator such as =, < or AND")
# Operators of other languages that people write by habit, each with the operator of CQL2.
_HABITS = {"==": "=", "&&": "AND", "||": "OR", "!": "NOT"}


# A condition, or a value in it, in the JSON encoding of CQL2.
Node: TypeAlias = dict[str, Any] | str | float | bool | None


def _negated(node: Node) -> Node:
    return {"op": "not", "args": [node]}


@v_args(inline=True)
class _Tree(Transformer):
    """Builds the nodes of the JSON encoding of CQL2."""

    def start(self, node: Node) -> Node:
        return node

    def comparison(self, left: Node, operator: Token, right: Node) -> Node:
        return {"op": "<>" if operator == "!=" else operator.lower(), "args": [left, right]}

    def disjunction(self, *nodes: Node) -> Node:
        return {"op": "or", "args": list(nodes)}

    def conjunction(self, *nodes: Node) -> Node:
        return {"op": "and", "args": list(nodes)}

    def negation(self, _: Token, node: Node) -> Node:
        return _negated(node)

    def not_like(self, left: Node, _: Token, operator: Token, right: Node) -> Node:
        return _negated(self.comparison(left, operator, right))

    def between(self, value: Node, _: Token, low: Node, high: Node) -> Node:
        return {"op": "between", "args": [value, low, high]}

    def not_between(self, value: Node, _: Token, operator: Token, low: Node, high: Node) -> Node:
        return _negated(self.between(value, operator, low, high))

    def member(self, value: Node, _: Token, *choices: Node) -> Node:
        return {"op": "in", "args": [value, list(choices)]}

    def not_member(self, value: Node, _: Token, operator: Token, *choices: Node) -> Node:
        return _negated(self.member(value, operator, *choices))

    def null(self, value: Node, *_: Token) -> Node:
        return {"op": "isNull", "args": [value]}

    def not_null(self, value: Node, *_: Token) -> Node:
        return _negated(self.null(value))

    def signed(self, sign: Token, node: Node) -> Node:
        if sign == "+":
            return node
        return -node if isinstance(node, float) else {"op": "*", "args": [-1.0, node]}

    def number(self, token: Token) -> float:
        return float(token)

    def text(self, token: Token) -> str:
        return token[1:-1].replace("''", "'")

    def quoted(self, token: Token) -> Node:
        return {"property": token[1:-1].replace('""', '"')}

    def name(self, token: Token) -> Node:
        return {"property": str(token)}

    def function(self, name: Token, *arguments: Node) -> Node:
        return {"op": name.lower(), "args": list(arguments)}

    def true(self, _: Token) -> bool:
        return True

    def false(self, _: Token) -> bool:
        return False

    def nothing(self, _: Token) -> None:
        return None


@functools.cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", transformer=_Tree(), maybe_placeholders=False)


def parse_text(text: str) -> Any:
    """Return the tree of CQL2 text.

    Returns
    -------
    dict, str, float, bool or None
        A dict has `op` and `args`, whose entries are trees or lists of trees, or it has `property`.

    Raises
    ------
    InvalidPlan
        If the text is too long or does not parse. The message says in one sentence what is wrong and, unless the text
        is empty or too long, at which character, counted from 1.

    Examples
    --------
    >>> parse_text("speed_mps > 5")
    {'op': '>', 'args': [{'property': 'speed_mps'}, 5.0]}
    >>> parse_text("speed_mps > 5 AN type = 'x'")
    Traceback (most recent call last):
        ...
    streaming.errors.InvalidPlan: where: an operator such as =, < or AND is expected at character 15; got AN
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidPlan(
            "%(where)s must have at most %(max_characters)s characters; got %(count)s",
            where="where",
            max_characters=MAX_CHARACTERS,
            count=len(text),
        )
    try:
        return _parser().parse(text)
    except UnexpectedToken as error:
        token, values = error.token, "NUMBER" in error.expected
    except UnexpectedCharacters as error:
        at = error.pos_in_stream
        assert at is not None  # errors of a lexer have a place
        token, values = Token("", text[at], at), "NUMBER" in error.allowed
    raise InvalidPlan("%(where)s: %(fault)s", where="where", fault=_explained(text, token, values))


def _explained(text: str, token: Token, values: bool) -> InvalidPlan:
    """Return the error why the parser rejects a token of a text; `values` tells whether it expected a value there."""
    if token.type == "$END":
        return _unfinished(text, values)
    start = _offset(token)
    character = start + 1
    if token[0] in "'\"":
        return (
            InvalidPlan("the %(mark)s at character %(character)s is not closed", mark=token[0], character=character)
            if values
            else _misplaced(text, token)
        )
    habit = next((h for h in _HABITS if text.startswith(h, start) or text.startswith(h, max(0, start - 1))), None)
    if habit is not None:
        return InvalidPlan(
            "write %(operator)s instead of %(habit)s at character %(character)s",
            operator=_HABITS[habit],
            habit=habit,
            character=text.find(habit, max(0, start - 1)) + 1,
        )
    if token == ")" and not values:
        return InvalidPlan("the ) at character %(character)s closes no bracket", character=character)
    if values:
        return InvalidPlan(
            "a value is expected at character %(character)s: %(value)s; got %(text)s",
            character=character,
            value=InvalidPlan(_VALUE),
            text=_word(text, start),
        )
    return _misplaced(text, token)


def _unfinished(text: str, values: bool) -> InvalidPlan:
    """Return what is missing at the end of a text."""
    if not text.strip():
        return InvalidPlan("a condition is missing")
    if values:
        return InvalidPlan(
            "a value is missing at the end, character %(character)s: %(value)s",
            character=len(text) + 1,
            value=InvalidPlan(_VALUE),
        )
    opened = _open_bracket(text)
    if opened is not None:
        return InvalidPlan("the ( at character %(character)s is not closed", character=opened + 1)
    return InvalidPlan("something is missing at the end, character %(character)s", character=len(text) + 1)


def _open_bracket(text: str) -> int | None:
    """Return the offset of the last opening bracket that is not closed; None if all are closed."""
    places = []
    for token in _parser().lex(text, dont_ignore=False):
        if token == "(":
            places.append(_offset(token))
        elif token == ")" and places:
            places.pop()
    return places[-1] if places else None


def _misplaced(text: str, token: Token) -> InvalidPlan:
    """Return the message that an operator is expected in the place of a token."""
    start = _offset(token)
    words = InvalidPlan(
        "%(operator)s is expected at character %(character)s; got %(text)s",
        operator=InvalidPlan(_OPERATOR),
        character=start + 1,
        text=_word(text, start),
    )
    after_name = token.type == "NAME" and text[:start].rstrip()[-1:].isalnum()
    if after_name and not _is_near_keyword(token):
        return InvalidPlan('%(fault)s (a name with spaces needs "double quotes")', fault=words)
    return words


def _is_near_keyword(token: Token) -> bool:
    return any(word.startswith(token.upper()) for word in ("AND", "OR", "LIKE", "BETWEEN", "IN", "IS"))


def _offset(token: Token) -> int:
    assert token.start_pos is not None  # only tokens that are made without a text have none
    return token.start_pos


def _word(text: str, start: int) -> str:
    """Return the text from an offset up to the next space, at most 30 characters of it."""
    return text[start:].split(None, 1)[0][:30]
