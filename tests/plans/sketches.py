"""Documents of queries of sketches that `SketchKind.parse` accepts, with every question and every key, there or not."""

from hypothesis import strategies as st

from streaming.kinds.sketch.asks import CONTRASTED, EVERY, FORMS, STATISTICS
from tests.plans.strategies import boxes, polygons, texts

numbers = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9))
quoted = st.sampled_from(["it's", 'say "yes"', "''"])
names = st.one_of(quoted, st.sampled_from(["TEMP", "PM2.5", "time", "from", "key"]), texts)
zones = st.sampled_from(["UTC", "Asia/Shanghai", "Europe/Berlin", "America/St_Johns"])
instants = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
clocks = st.sampled_from(["00:00", "14:00", "16:30:01", "23:59"])
OPTIONS = {
    "deviations": st.floats(1.001, 1_000),
    "lo": numbers,
    "hi": numbers,
    "value": numbers,
    "text": st.one_of(quoted, texts),
    "bins": st.integers(1, 1_000),
    "horizon_s": st.floats(0.001, 1e9),
    "model": texts,
    "level": st.integers(1, 50),
    "every": st.sampled_from(EVERY),
}


def lists_of_names(least=1, most=3):
    """Return lists of names that differ."""
    return st.lists(names, min_size=least, max_size=most, unique=True)


@st.composite
def asks(draw):
    """Return one question."""
    question = draw(st.sampled_from(list(FORMS)))
    form, ask = FORMS[question], {"question": question}
    features = draw(lists_of_names(form.least, min(form.most, form.least + 2)))
    if question in ("contains", "frequency"):
        key = draw(st.sampled_from(["value", "text"]))
        return ask | {"features": features, key: draw(OPTIONS[key])}
    if question == "regression":
        by = draw(lists_of_names().filter(lambda by: not set(by) & set(features)))
        at = {"at": draw(st.lists(numbers, min_size=len(by), max_size=len(by)))} if draw(st.booleans()) else {}
        return ask | {"features": features, "by": by} | at
    if question == "density":
        lo, hi = sorted([draw(numbers), draw(numbers)])
        return ask | {"features": features} | draw(st.sampled_from([{"lo": lo}, {"hi": hi}, {"lo": lo, "hi": hi}]))
    if features or draw(st.booleans()):
        ask["features"] = features
    if "statistic" in form.options and draw(st.booleans()):
        some = STATISTICS if question == "cells" else CONTRASTED
        least = {"count": form.least, "correlation": 2}
        ask["statistic"] = draw(st.sampled_from([one for one in some if least.get(one, 1) <= len(features)]))
    others = [key for key in form.options if key != "statistic"]
    for key in others:
        if key in form.needed or draw(st.booleans()):
            ask[key] = draw(OPTIONS[key])
    return ask


@st.composite
def times(draw):
    """Return the times of a selection."""
    document = draw(st.fixed_dictionaries({}, optional={"zone": zones}))
    if draw(st.booleans()):
        document["last_s"] = draw(st.floats(0.001, 3e9))
    elif draw(st.booleans()):
        document["ranges"] = draw(st.lists(time_ranges(), max_size=3))
    if draw(st.booleans()):
        start, end = draw(st.lists(clocks, min_size=2, max_size=2, unique=True))
        document["daily"] = {"from": start, "to": end}
    return document


@st.composite
def time_ranges(draw):
    """Return a range of times."""
    start, end = sorted(draw(st.lists(st.datetimes(), min_size=2, max_size=2, unique=True)))
    sides = {"from": start.isoformat() + "Z", "to": end.isoformat() + "Z"}
    kept = draw(st.sampled_from([("from",), ("to",), ("from", "to")]))
    return {side: sides[side] for side in kept}


@st.composite
def feature_ranges(draw):
    """Return the range of a feature."""
    lo, hi = sorted(draw(st.lists(st.integers(-99, 99), min_size=2, max_size=2, unique=True)))
    bounds = {draw(st.sampled_from(["lo", "above"])): lo, draw(st.sampled_from(["hi", "below"])): hi + 0.5}
    kept = draw(st.sampled_from([slice(1), slice(1, 2), slice(2)]))
    return {"feature": draw(names)} | dict(list(bounds.items())[kept])


@st.composite
def places(draw):
    """Return the keys of a place, or none."""
    place = draw(st.sampled_from(["area", "polygon", None]))
    if place == "polygon":
        # Those of a shape about a focus are in metres.
        return {"polygon": [[x / 100, y / 100] for x, y in draw(polygons())]}
    return {} if place is None else {"area": draw(boxes)}


@st.composite
def sketch_documents(draw):
    """Return the document of a query of a sketch."""
    needed = {"stream": texts, "kind": st.just("sketch"), "ask": st.lists(asks(), min_size=1, max_size=3)}
    optional = {
        "time": times(),
        "ranges": st.lists(feature_ranges(), max_size=2, unique_by=lambda entry: entry["feature"]),
        "confidence": st.floats(0.5, 0.9999),
        "once": st.booleans(),
    }
    document = draw(st.fixed_dictionaries(needed, optional=optional)) | draw(places())
    if any(ask["question"] == "contrast" for ask in document["ask"]):
        other = draw(places()) | draw(st.fixed_dictionaries({}, optional={"time": times()}))
        document["other"] = other or {"time": {}}
    return document
