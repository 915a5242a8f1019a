"""What a query asks of a sketch: one dataclass for each form of question, from JSON and back.

If a value breaks a rule, the functions raise `InvalidPlan`. The message says the rule and the value.

References
----------
Synopsis (2017), section 3.6: relational, statistical, density, set and inferential queries.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from streaming.errors import InvalidPlan
from streaming.kinds.parts import check_keys, given, parse_choice, parse_number, parse_text
from streaming.language import gettext

# The name under which sets know the key of an element, which is none of its features.
KEY = "key"
STATISTICS = ("count", "sum", "mean", "std", "min", "max")
CONTRASTED = ("mean", "std", "count", "sum", "min", "max", "correlation")
EVERY = ("hour", "day", "week", "month", "year")
MAX_ASKS = 16
MAX_FEATURES = 32
MAX_BINS = 1_000
MAX_LEVEL = 50
MAX_DEVIATIONS = 1_000.0
# A hundred years.
MAX_HORIZON_S = 3_155_760_000.0


@dataclass(frozen=True)
class Statistic:
    """A question about features that needs nothing but their names.

    Parameters
    ----------
    question : {"select", "count", "sum", "mean", "std", "min", "max", "deciles", "correlation", "distinct"}
        `select`: the part of the sketch that the selection has; `count`: how many elements, or how many values of each
        feature; `sum`, `mean`, `std`, `min`, `max`, `deciles`: of each feature; `correlation`: of each pair of
        features; `distinct`: how many different values each feature has.
    features : tuple of str
        The features asked about. `select` has all features without them, `count` counts elements.
    """

    question: str
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outliers:
    """How many values may lie far from the mean, by Chebyshev's inequality.

    Parameters
    ----------
    features : tuple of str
        The features asked about.
    deviations : float
        Values at least so many standard deviations from the mean are outliers; above 1.
    """

    features: tuple[str, ...]
    deviations: float = 3.0
    question: str = "outliers"


@dataclass(frozen=True)
class Contrast:
    """The difference of a statistic between the selection and the other one.

    Parameters
    ----------
    features : tuple of str
        The features asked about; two or more for `correlation`.
    statistic : {"mean", "std", "count", "sum", "min", "max", "correlation"}
        The statistic that is compared.
    """

    features: tuple[str, ...]
    statistic: str = "mean"
    question: str = "contrast"


@dataclass(frozen=True)
class Density:
    """The share of a feature's values that lie in a range: the integral of its density.

    Parameters
    ----------
    features : tuple of str
        The feature asked about.
    lo : float or None
        The least value of the range; no bound if it is missing. A question has this, or `hi`, or both.
    hi : float or None
        The largest value of the range; no bound if it is missing.
    """

    features: tuple[str, ...]
    lo: float | None = None
    hi: float | None = None
    question: str = "density"


@dataclass(frozen=True)
class Probability:
    """How probable a value of a feature is: the density at the value.

    Parameters
    ----------
    features : tuple of str
        The feature asked about.
    value : float
        The value asked about.
    """

    features: tuple[str, ...]
    value: float
    question: str = "probability"


@dataclass(frozen=True)
class Histogram:
    """How many values of a feature lie in each of some bins.

    Parameters
    ----------
    features : tuple of str
        The feature asked about.
    bins : int
        The number of bins of equal width, from the least to the largest value.
    """

    features: tuple[str, ...]
    bins: int = 20
    question: str = "histogram"


@dataclass(frozen=True)
class Member:
    """Whether a value is among those of a feature, or how often.

    Parameters
    ----------
    question : {"contains", "frequency"}
        `contains`: whether the value was there, by a Bloom filter; `frequency`: how often, by a count-min sketch.
    features : tuple of str
        The feature asked about; `key` is the key of the element.
    value : float or None
        The number asked about. A question has this or `text`.
    text : str or None
        The text asked about, for a feature that is a text.
    """

    question: str
    features: tuple[str, ...]
    value: float | None = None
    text: str | None = None


@dataclass(frozen=True)
class Regression:
    """How a feature follows from others: multiple linear regression.

    Parameters
    ----------
    features : tuple of str
        The feature that is predicted.
    by : tuple of str
        The features that predict it.
    at : tuple of float
        A value for each feature of `by`, in their order, for which a value is predicted; none if it is missing.
    """

    features: tuple[str, ...]
    by: tuple[str, ...]
    at: tuple[float, ...] = ()
    question: str = "regression"


@dataclass(frozen=True)
class Forecast:
    """How the mean of a feature goes on.

    Parameters
    ----------
    features : tuple of str
        The feature that is forecast.
    horizon_s : float
        How far to look ahead, in seconds, at most a hundred years.
    model : str
        The name of the model: see docs/sketch-queries.md.
    """

    features: tuple[str, ...]
    horizon_s: float
    model: str = "harmonic"
    question: str = "forecast"


@dataclass(frozen=True)
class Cells:
    """A value for each cell of the space that has elements, as for a map.

    Parameters
    ----------
    level : int
        How fine the cells are: the number of bits of their geohash, each of which halves a cell.
    features : tuple of str
        The feature asked about; none for the count of elements.
    statistic : {"count", "sum", "mean", "std", "min", "max"}
        The value of each cell; all but `count` need a feature.
    """

    level: int
    features: tuple[str, ...] = ()
    statistic: str = "count"
    question: str = "cells"


@dataclass(frozen=True)
class Series:
    """The count, sum, mean, standard deviation, minimum and maximum of features, one row for each step of time.

    Parameters
    ----------
    features : tuple of str
        The features asked about.
    every : {"hour", "day", "week", "month", "year"}
        The length of a step, in the time zone of the query.
    """

    features: tuple[str, ...]
    every: str = "month"
    question: str = "series"


Ask = (
    Statistic
    | Outliers
    | Contrast
    | Density
    | Probability
    | Histogram
    | Member
    | Regression
    | Forecast
    | Cells
    | Series
)


@dataclass(frozen=True)
class Form:
    """The form of a question.

    Parameters
    ----------
    plan : type
        The class of what asks it.
    least, most : int
        How many features it may have.
    options : mapping of str to callable
        How the value of each other key is read, given the value and words for messages.
    needed : tuple of str
        The keys without which it is not asked.
    """

    plan: type
    least: int = 1
    most: int = MAX_FEATURES
    options: Mapping[str, Callable[[Any, str], Any]] = field(default_factory=dict)
    needed: tuple[str, ...] = ()


def _integer(most: int) -> Callable[[Any, str], int]:
    def parse(value: Any, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise InvalidPlan(
                "%(name)s must be an integer from 1 to %(most)s; got %(value)s",
                name=name,
                most=most,
                value=f"{value!r:.200}",
            )
        return value

    return parse


def _names(value: Any, name: str, least: int = 1, most: int = MAX_FEATURES) -> tuple[str, ...]:
    """Return the names of features in a list, each of which may be there only once."""
    rule = (
        gettext("exactly %(least)s") % {"least": least}
        if least == most
        else gettext("%(least)s to %(most)s") % {"least": least, "most": most}
    )
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise InvalidPlan(
            "%(name)s must be a list of %(rule)s names of features; got %(value)s",
            name=name,
            rule=rule,
            value=f"{value!r:.200}",
        )
    names = tuple(parse_text(entry, name) for entry in value)
    if len(set(names)) < len(names):
        raise InvalidPlan(
            "%(name)s must differ from each other; got %(names)s", name=name, names=f"{', '.join(names):.200}"
        )
    return names


def _values(value: Any, name: str) -> tuple[float, ...]:
    """Return the numbers of a list."""
    if not isinstance(value, list) or len(value) > MAX_FEATURES:
        raise InvalidPlan(
            "%(name)s must be a list with a number for each feature of by; got %(value)s",
            name=name,
            value=f"{value!r:.200}",
        )
    return tuple(parse_number(number, name) for number in value)


def _choice(choices: tuple[str, ...]) -> Callable[[Any, str], str]:
    return lambda value, name: parse_choice({name: value}, name, choices)


def _above(limit: float, hi: float) -> Callable[[Any, str], float]:
    return lambda value, name: parse_number(value, name, above=limit, hi=hi)


FORMS: Mapping[str, Form] = {
    "select": Form(Statistic, 0),
    "count": Form(Statistic, 0),
    "sum": Form(Statistic),
    "mean": Form(Statistic),
    "std": Form(Statistic),
    "min": Form(Statistic),
    "max": Form(Statistic),
    "deciles": Form(Statistic),
    "correlation": Form(Statistic, 2),
    "distinct": Form(Statistic),
    "outliers": Form(Outliers, options={"deviations": _above(1.0, MAX_DEVIATIONS)}),
    "contrast": Form(Contrast, options={"statistic": _choice(CONTRASTED)}),
    "density": Form(Density, 1, 1, {"lo": parse_number, "hi": parse_number}),
    "probability": Form(Probability, 1, 1, {"value": parse_number}, ("value",)),
    "histogram": Form(Histogram, 1, 1, {"bins": _integer(MAX_BINS)}),
    "contains": Form(Member, 1, 1, {"value": parse_number, "text": parse_text}),
    "frequency": Form(Member, 1, 1, {"value": parse_number, "text": parse_text}),
    "regression": Form(Regression, 1, 1, {"by": _names, "at": _values}, ("by",)),
    "forecast": Form(Forecast, 1, 1, {"horizon_s": _above(0.0, MAX_HORIZON_S), "model": parse_text}, ("horizon_s",)),
    "cells": Form(Cells, 0, 1, {"level": _integer(MAX_LEVEL), "statistic": _choice(STATISTICS)}, ("level",)),
    "series": Form(Series, options={"every": _choice(EVERY)}),
}
QUESTIONS = tuple(FORMS)
ASK_KEYS = ("question", "features", *dict.fromkeys(key for form in FORMS.values() for key in form.options))


def parse_asks(value: Any) -> tuple[Ask, ...]:
    """Return the questions of a JSON list."""
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_ASKS:
        raise InvalidPlan(
            "ask must be a list of 1 to %(max_asks)s questions; got %(value)s",
            max_asks=MAX_ASKS,
            value=f"{value!r:.200}",
        )
    return tuple(_ask(entry) for entry in value)


def _ask(document: Any) -> Ask:
    if not isinstance(document, dict) or "question" not in document:
        raise InvalidPlan(
            "ask: an entry must be an object with a question; got %(document)s", document=f"{document!r:.200}"
        )
    question = parse_choice(document, "question", QUESTIONS)
    form = FORMS[question]
    check_keys(document, ("question", "features", *form.options), question)
    features = _names(document.get("features", []), f"{question}: features", form.least, form.most)
    for key in form.needed:
        if key not in document:
            raise InvalidPlan("%(question)s must have %(key)s; got none", question=question, key=key)
    options = {
        key: parse(document[key], f"{question}: {key}") for key, parse in form.options.items() if key in document
    }
    ask: Ask = form.plan(question=question, features=features, **options)
    _CHECKS.get(form.plan, lambda _: None)(ask)
    return ask


def _check_contrast(ask: Contrast) -> None:
    if ask.statistic == "correlation" and len(ask.features) < 2:
        raise InvalidPlan(
            "contrast: correlation needs 2 features or more; got %(features)s", features=", ".join(ask.features)
        )


def _check_density(ask: Density) -> None:
    if ask.lo is None and ask.hi is None:
        raise InvalidPlan("density must have lo or hi or both; got none")
    if ask.lo is not None and ask.hi is not None and ask.lo > ask.hi:
        raise InvalidPlan("density: lo must not exceed hi; got %(lo)g > %(hi)g", lo=ask.lo, hi=ask.hi)


def _check_member(ask: Member) -> None:
    named = given(vars(ask), ("value", "text"))
    if len(named) != 1:
        raise InvalidPlan(
            "%(question)s must have one of value, text; got %(named)s",
            question=ask.question,
            named=", ".join(named) or gettext("none"),
        )


def _check_regression(ask: Regression) -> None:
    if set(ask.features) & set(ask.by):
        raise InvalidPlan(
            "regression: a feature must not be predicted by itself; got %(features)s twice",
            features=ask.features[0],
        )
    if ask.at and len(ask.at) != len(ask.by):
        raise InvalidPlan(
            "regression: at must have a number for each feature of by, %(features)s; got %(got)s",
            features=len(ask.by),
            got=len(ask.at),
        )


def _check_cells(ask: Cells) -> None:
    if ask.statistic != "count" and not ask.features:
        raise InvalidPlan("cells: %(statistic)s needs a feature; got none", statistic=ask.statistic)


_CHECKS: Mapping[type, Callable[[Any], None]] = {
    Contrast: _check_contrast,
    Density: _check_density,
    Member: _check_member,
    Regression: _check_regression,
    Cells: _check_cells,
}


def ask_document(ask: Ask) -> dict[str, Any]:
    """Return the JSON form of a question; what is not given is left out."""
    document: dict[str, Any] = {"question": ask.question}
    for entry in fields(ask):
        value = getattr(ask, entry.name)
        if value not in (None, ()) and entry.name != "question":
            document[entry.name] = list(value) if isinstance(value, tuple) else value
    return document
