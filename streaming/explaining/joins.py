"""Joins explained: the partners of an element, or the nearest that could be one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import shapely

from streaming.explaining.asked import asked_terms
from streaming.explaining.borders import border_of_feature
from streaming.explaining.known import ExplanationFacts
from streaming.explaining.places import steps_words
from streaming.explaining.subject import Subject
from streaming.explaining.terms import BorderDistance, Term, every
from streaming.explaining.words import metres, span
from streaming.kinds.encounter.plan import AwayFrom, EncounterPlan
from streaming.kinds.interval_join.plan import IntervalJoinPlan
from streaming.kinds.join.partners import Partners
from streaming.kinds.join.plan import JoinPlan
from streaming.kinds.parts import Box
from streaming.kinds.window_join.plan import WindowJoinPlan
from streaming.kinds.words import number
from streaming.language import gettext, gettext_noop
from streaming.operators.elements import Elements
from streaming.operators.failures import Failures
from streaming.operators.layer import LayerVersion
from streaming.operators.metres import distance_m
from streaming.operators.spatial_join import SpatialJoins
from streaming.operators.stream_join import StreamJoins

Joined = JoinPlan | EncounterPlan | WindowJoinPlan | IntervalJoinPlan

# The nearest feature is looked for within these distances, one after the other: metres, or units of the space.
REACHES = (100.0, 1_000.0, 10_000.0, 100_000.0)
MOST_PARTNERS_SHOWN = 3
# Names of properties that hold the name of a feature or an object.
NAMES = ("name", "title", "label")
_PREDICATES = {
    "intersects": gettext_noop("intersects"),
    "dwithin": gettext_noop("within %(distance)s of"),
    "within": gettext_noop("within"),
    "contains": gettext_noop("contains"),
    "covered_by": gettext_noop("covered by"),
    "covers": gettext_noop("covers"),
    "crosses": gettext_noop("crosses"),
    "touches": gettext_noop("touches"),
    "overlaps": gettext_noop("overlaps"),
    "equals": gettext_noop("equals"),
    "disjoint": gettext_noop("disjoint"),
    "boxes": gettext_noop("its box meets that of"),
}


def _feature_terms(plan: JoinPlan, subject: Subject, known: ExplanationFacts) -> list[Term]:
    """Return the term of the partners of a join with a layer, or with stored elements."""
    layer = known.layer(plan.partners.layer)
    asks = partner_words(plan, gettext("a feature of %(name)s") % {"name": plan.partners.name}, subject)
    if layer is None:
        return [Term(asks, None, gettext("the layer cannot be read here"))]
    hashes, failures = _partners(plan, subject, layer)
    if failures.errors:
        return [Term(asks, bool(len(hashes)), "; ".join(failures.errors.values()))]
    if len(hashes) and plan.partners.predicate != "disjoint":
        return [_term_of(asks, True, "", next(_features(layer, hashes[:1])), subject, more_words(len(hashes)))]
    nearest = _nearest(plan, subject, layer)
    if nearest is None:
        return [
            Term(
                asks,
                bool(len(hashes)),
                gettext("there is none within %(distance)s") % {"distance": _length(REACHES[-1], subject)},
            )
        ]
    return [_term_of(asks, bool(len(hashes)), gettext("the nearest is "), nearest, subject)]


def partner_words(plan: Joined, what: str, subject: Subject) -> str:
    """Return what a join asks of a pair, in words."""
    partners: Partners = plan.partners
    distance = _length(partners.distance, subject)
    words = gettext(_PREDICATES.get(partners.predicate, partners.predicate)) % {"distance": distance}
    which = gettext(" with %(where)s") % {"where": partners.where} if partners.where else ""
    whose = (
        gettext("its box, enlarged %(transform)s, ") % {"transform": steps_words(plan.transform)}
        if plan.transform
        else ""
    )
    return f"{whose}{words} {what}{which}"


def _length(length: float, subject: Subject) -> str:
    return metres(length) if subject.space.geographic else number(length)


def _partners(plan: JoinPlan, subject: Subject, layer: LayerVersion) -> tuple[np.ndarray, Failures]:
    """Return the hashes of the partners of an element, areas and filters of elements aside, and what failed."""
    failures, row = Failures(), np.zeros(1, dtype=np.int64)
    pairs = SpatialJoins([plan], subject.space).refined(subject.elements, row, row, lambda _: layer, failures)
    return np.unique(pairs.partner), failures


def _nearest(plan: JoinPlan, subject: Subject, layer: LayerVersion) -> dict[str, Any] | None:
    """Return the nearest feature that passes the filters of the join; None if there is none near."""
    for reach in REACHES:
        partners = replace(plan.partners, predicate="dwithin", distance=reach, pair_filters=())
        hashes, _ = _partners(replace(plan, partners=partners, transform=()), subject, layer)
        if len(hashes):
            return min(_features(layer, hashes), key=lambda one: _apart(one, subject))
    return None


def _features(layer: LayerVersion, hashes: np.ndarray) -> Iterator[dict[str, Any]]:
    """Yield features as dicts with key, properties and shape."""
    for _, features, rows in layer.located(hashes):
        table = features.table.select(["key", "properties"]).take(pa.array(rows))
        for row, shape in zip(table.to_pylist(), features.shapes(rows), strict=True):
            yield row | {"shape": shape}


def _apart(feature: Mapping[str, Any], subject: Subject) -> float:
    if subject.space.geographic:
        return float(distance_m(subject.shape, np.array([feature["shape"]], dtype=object))[0])
    return float(shapely.distance(subject.shape[0], feature["shape"]))


def _term_of(
    asks: str, holds: bool | None, opening: str, feature: Mapping[str, Any], subject: Subject, more: str = ""
) -> Term:
    border = border_of_feature(feature["shape"], subject) if subject.space.geographic else None
    apart = _apart(feature, subject)
    far = gettext("%(distance)s away") % {"distance": _length(apart, subject)} if apart else gettext("which it meets")
    return Term(asks, holds, f"{opening}{named(feature['key'], feature['properties'])}, {far}{more}", border=border)


def named(key: str, properties: str | None) -> str:
    """Return the name of a feature or an object, or its key if it has none."""
    return name_in(orjson.loads(properties or "{}"), key)


def name_in(properties: Mapping[str, Any], key: str) -> str:
    """Return the name that properties have, or else a key."""
    return next((str(properties[name]) for name in NAMES if properties.get(name)), key)


def more_words(count: int) -> str:
    """Say how many partners there are besides the one that is named."""
    return gettext(", and %(count)s more") % {"count": count - 1} if count > 1 else ""


def join_term(plan: JoinPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a join with a layer, with stored elements, or with a stream."""
    if plan.partners.source == "stream":
        terms = [_stream_partner(plan, subject, known)]
    else:
        terms = _feature_terms(plan, subject, known)
    return every(gettext("in the answer"), [*asked_terms(plan, subject), *terms])


def possible_partners(partners: Partners, asks: str, subject: Subject, known: ExplanationFacts) -> list[Subject] | Term:
    """Return the objects that may be partners of an element; if there are none, the term that says so."""
    if known.partners is None:
        return Term(asks, None, gettext("where the objects of %(name)s were is not known") % {"name": partners.name})
    others = [one for one in known.partners if (one.stream, one.key) != (subject.stream, subject.key)]
    return others or Term(asks, False, gettext("there is none that could be a partner"))


def _stream_partner(plan: JoinPlan | EncounterPlan, subject: Subject, known: ExplanationFacts) -> Term:
    asks = partner_words(plan, gettext("an object of %(name)s") % {"name": plan.partners.name}, subject)
    others = possible_partners(plan.partners, asks, subject, known)
    if isinstance(others, Term):
        return others
    met = _met(plan, subject, others)
    apart = [_apart({"shape": one.shape[0]}, subject) for one in others]
    nearest = min(met, key=apart.__getitem__) if met else int(np.argmin(apart))
    other = others[nearest]
    border = None
    if subject.space.geographic:
        border = BorderDistance(apart[nearest] - plan.partners.distance, subject.place, other.place)
    name = name_in(other.properties, other.key)
    opening = "" if met else gettext("the nearest is ")
    far = gettext("%(distance)s away") % {"distance": _length(apart[nearest], subject)}
    return Term(
        asks,
        bool(met),
        f"{opening}{name}, {far}{more_words(len(met))}",
        border=border,
    )


def _met(plan: JoinPlan | EncounterPlan, subject: Subject, others: Sequence[Subject]) -> list[int]:
    """Return the positions of the elements that are partners, areas and filters of elements aside."""
    pairs = replace_area(plan, subject.space.n)
    everyone = [subject, *others]
    tables = pa.concat_tables([one.table for one in everyone])
    stream = np.concatenate([one.elements.stream for one in everyone])
    bounds = np.concatenate([one.bounds for one in everyone])
    shaped = any(one.elements.has_geometries for one in everyone)
    elements = Elements(stream, bounds, tables.take, has_geometries=shaped)
    rows = np.arange(len(everyone))
    keys = tables["key_hash"].to_numpy()
    found = StreamJoins([pairs], subject.space).pairs(elements, keys, rows[:1], rows[1:])
    return sorted({int(partner) - 1 for partner in found.partner})


def replace_area(plan: JoinPlan | EncounterPlan, n: int) -> JoinPlan:
    """Return the join of the elements of a plan, wherever they are and whatever their properties."""
    everywhere: Box = (-np.inf,) * n + (np.inf,) * n
    return JoinPlan(plan.stream, plan.partners, everywhere, transform=plan.transform)


def time_term(plan: WindowJoinPlan | IntervalJoinPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a join over event time: of its pairs, only what is about the element itself can be known."""
    asks = partner_words(plan, gettext("a report of %(name)s, near in time") % {"name": plan.partners.name}, subject)
    found = gettext(
        "reports wait in the engine until their time is over; whether one met this one is told then, and not kept"
    )
    return every(gettext("in the answer"), [*asked_terms(plan, subject), Term(asks, None, found)])


def encounter_term(plan: EncounterPlan, subject: Subject, known: ExplanationFacts) -> Term:
    """Explain a query for encounters: where the two are now. For how long they have been near is not known."""
    terms = [*asked_terms(plan, subject), _stream_partner(plan, subject, known)]
    if plan.away_from is not None:
        terms.append(_away_term(plan, plan.away_from, subject, known))
    lasts = gettext("the engine follows this in event time, and tells it once it lasted so long")
    if plan.for_s:
        terms.append(Term(gettext("for at least %(for_s)s without a break") % {"for_s": span(plan.for_s)}, None, lasts))
    return every(gettext("in the answer"), terms)


def _away_term(plan: EncounterPlan, away: AwayFrom, subject: Subject, known: ExplanationFacts) -> Term:
    asks = gettext("more than %(distance)s from %(layer)s") % {
        "distance": _length(away.distance, subject),
        "layer": away.layer,
    }
    layer = known.layer(away.layer)
    if layer is None:
        return Term(asks, None, gettext("the layer cannot be read here"))
    near = JoinPlan(plan.stream, Partners("layer", away.layer), plan.area)
    feature = _nearest(near, subject, layer)
    if feature is None:
        return Term(
            asks,
            away.distance < REACHES[-1] or None,
            gettext("there is none within %(distance)s") % {"distance": _length(REACHES[-1], subject)},
        )
    term = _term_of(asks, _apart(feature, subject) > away.distance, gettext("the nearest is "), feature, subject)
    return term if term.border is None else replace(term, border=_beyond(term.border, away.distance))


def _beyond(border: BorderDistance, distance_m_: float) -> BorderDistance:
    return replace(border, distance_m=border.distance_m - distance_m_)
