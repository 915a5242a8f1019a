"""Documents of plans that `parse_plan` accepts, of every kind and with every key, there or not."""

import math

from hypothesis import strategies as st

from streaming.kinds.aggregate.plan import FUNCTIONS
from streaming.kinds.fields import EMITS
from streaming.kinds.join.partners import PREDICATES, SOURCES
from streaming.kinds.range.plan import REPORTS
from tests.areas import random_area
from tests.draws import rngs
from tests.strategies import corners, steps


@st.composite
def open_corners(draw):
    """Return a box that lacks some bounds: both of longitude, which wraps, and any of the others."""
    box = draw(corners())
    for lo, hi in draw(st.lists(st.sampled_from([(0, 0), (1, None), (None, 1), (1, 1)]), max_size=3)):
        for side, axis in (("lo", lo), ("hi", hi)):
            if axis is not None:
                box[side][axis] = None
    return box


boxes = st.one_of(corners(), open_corners())
texts = st.text(min_size=1, max_size=8)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\'), min_size=1, max_size=8)
wheres = st.sampled_from(["", " ", "kind = 'cargo'", "speed_mps > 3"])
udfs = st.one_of(
    st.fixed_dictionaries({"udf": texts}, optional={"argument": st.text(max_size=8)}),
    st.fixed_dictionaries({"argument": st.text(max_size=8), "udf": texts}),
)
filters = st.one_of(
    st.fixed_dictionaries({"key": texts}),
    st.fixed_dictionaries({"keys": st.lists(texts, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"box": boxes}),
    udfs,
)  # in the order of their forms
amounts = st.one_of(st.integers(0, 50), st.floats(0, 1e9))
looks = {"where": wheres, "filters": st.lists(filters, max_size=3)}
common = looks | {"transform": st.lists(steps, max_size=3), "emit": st.sampled_from(EMITS)}
kept = st.sampled_from(["changes", "membership"])
boxes_or_null = st.one_of(st.none(), boxes)
shapes = st.builds(
    lambda rng, lon, lat: random_area(rng, lon, lat, 1.0),
    rngs(),
    st.sampled_from([-180, 20.5, 180]),
    st.sampled_from([-90, 0, 60.5]),
)
areas_or_null = st.one_of(boxes_or_null, shapes)


@st.composite
def partners(draw, sources=SOURCES):
    """Return what a join says of its partners."""
    source = draw(st.sampled_from(sources))
    optional = {"where": wheres, "filters": st.lists(filters, max_size=2), "pair_filters": st.lists(udfs, max_size=2)}
    document = {source: draw(texts)} | draw(st.fixed_dictionaries({}, optional=optional))
    others = [other for other in sources if other != source]
    if others and draw(st.booleans()):
        document[draw(st.sampled_from(others))] = None
    choices = [predicate for predicate in PREDICATES if source != "stream" or predicate != "disjoint"]
    predicate = draw(st.one_of(st.none(), st.sampled_from(choices), st.just("dwithin")))
    if predicate is not None:
        document["predicate"] = predicate
    if predicate == "dwithin":
        document["distance"] = draw(amounts)
    return document


@st.composite
def range_documents(draw):
    """Return the document of a range query."""
    needed, other = draw(st.permutations(["area", "compare"]))
    optional = common | {"kind": st.just("range"), "report": st.sampled_from(REPORTS), other: boxes_or_null}
    document = draw(st.fixed_dictionaries({"stream": texts, needed: boxes}, optional=optional))
    if document.get("report") != "outside" and draw(st.booleans()):
        document["area"] = draw(shapes)
    return document


@st.composite
def join_documents(draw):
    """Return the document of a join."""
    needed = {"stream": texts, "kind": st.just("join"), "join": partners()}
    return draw(st.fixed_dictionaries(needed, optional=common | {"area": areas_or_null}))


lengths = st.one_of(st.integers(1, 20_000_000), st.floats(0.001, 2e7))
limits = st.one_of(st.integers(-5, 5), st.floats(-1e9, 1e9))


@st.composite
def polygons(draw):
    """Return the vertices of a ring that is simple, since it turns about the focus; closed or not."""
    angles = sorted(draw(st.lists(st.integers(0, 99), min_size=4, max_size=9, unique=True)))
    ring = [[1_000 * math.cos(angle * math.tau / 100), 500 * math.sin(angle * math.tau / 100)] for angle in angles]
    return ring + ring[:1] if draw(st.booleans()) else ring


@st.composite
def half_widths(draw):
    """Return half-widths of one to three dimensions, of which one is bounded."""
    widths = draw(st.lists(st.one_of(st.none(), lengths), min_size=0, max_size=2))
    return draw(st.permutations([*widths, draw(lengths)]))


@st.composite
def focuses(draw):
    """Return where a query is."""
    if draw(st.booleans()):
        return {"key": draw(texts)} | draw(st.fixed_dictionaries({}, optional={"stream": texts, "at": st.none()}))
    return {"at": [draw(st.floats(-180, 180)), draw(st.integers(-90, 90))]}


@st.composite
def arounds(draw):
    """Return the focus and the shape of a moving range."""
    around = draw(focuses())
    name, shapes = draw(st.sampled_from([("radius", lengths), ("half_widths", half_widths()), ("polygon", polygons())]))
    shape = draw(shapes)
    if name == "half_widths" and "at" in around:
        shape = [*shape[:2], None] if any(shape[:2]) else [1, 1, None]
    return around | {name: shape}


@st.composite
def aggregates(draw):
    """Return what an aggregate says."""
    function = draw(st.sampled_from(FUNCTIONS))
    over = {"dimension": "latitude"} if draw(st.booleans()) else {"property": draw(names)}
    thresholds = st.lists(
        st.one_of(
            st.fixed_dictionaries({"above": limits}, optional={"for_s": amounts.filter(lambda x: x < 3e7)}),
            st.fixed_dictionaries({"below": limits}, optional={"above": st.none()}),
        ),
        max_size=3,
        unique_by=lambda threshold: (threshold.get("above"), threshold.get("below")),
    )
    document = {"function": function} | ({} if function == "count" else over)
    return document | draw(st.fixed_dictionaries({}, optional={"group_by": names, "thresholds": thresholds}))


@st.composite
def moving_documents(draw):
    """Return the document of a moving range, perhaps with an aggregate."""
    optional = looks | {"emit": kept, "kind": st.just("range"), "area": areas_or_null, "aggregate": aggregates()}
    return draw(st.fixed_dictionaries({"stream": texts, "around": arounds()}, optional=optional))


@st.composite
def nearest_documents(draw):
    """Return the document of a query for nearest neighbours."""
    needed = {"stream": texts, "kind": st.just("knn"), "k": st.integers(1, 1_000), "around": focuses()}
    optional = looks | {"emit": kept, "area": areas_or_null, "max_distance": lengths, "alpha": st.floats(0, 10)}
    return draw(st.fixed_dictionaries(needed, optional=optional))


@st.composite
def aggregate_documents(draw):
    """Return the document of an aggregate over a range that stays where it is."""
    document = draw(range_documents()) | {"aggregate": draw(aggregates())}
    return document | {"emit": draw(kept)}


@st.composite
def time_join_documents(draw):
    """Return the document of a join over event time."""
    needed = {"stream": texts, "join": partners(("stream",))}
    optional = common | {"area": areas_or_null, "emit": st.just("all"), "mirrored": st.booleans()}
    optional |= {"lateness_s": st.sampled_from([0, 3, 0.5]), "idle_s": st.sampled_from([1, 0.25])}
    document = draw(st.fixed_dictionaries(needed, optional=optional))
    if draw(st.booleans()):
        times = {"slide_s": st.sampled_from([1, 7.5, 900]), "start_s": st.sampled_from([-5, 0, 0.5])}
        windows = {"kind": st.just("window_join"), "window_s": st.sampled_from([0.5, 60, 90])}
        return document | draw(st.fixed_dictionaries(windows, optional=times))
    lower, upper = sorted(draw(st.lists(st.floats(-1e5, 1e5), min_size=2, max_size=2)))
    bins = draw(st.fixed_dictionaries({}, optional={"bin_s": st.sampled_from([0.5, 60])}))
    return document | {"kind": "interval_join", "lower_s": lower, "upper_s": upper} | bins


@st.composite
def encounter_documents(draw):
    """Return the document of encounters."""
    needed = {"stream": texts, "kind": st.just("encounter"), "join": partners(("stream",))}
    away = st.one_of(st.none(), st.fixed_dictionaries({"layer": texts, "distance": amounts}))
    optional = common | {"area": areas_or_null, "emit": kept, "mirrored": st.booleans(), "away_from": away}
    optional |= {"lateness_s": st.sampled_from([0, 3, 0.5]), "idle_s": st.sampled_from([1, 0.25])}
    optional |= {"gap_s": st.sampled_from([0.5, 60, 90])}
    needed["for_s"] = st.sampled_from([0, 0.5, 60, 90])
    return draw(st.fixed_dictionaries(needed, optional=optional))


documents = st.one_of(
    encounter_documents(),
    time_join_documents(),
    range_documents(),
    join_documents(),
    moving_documents(),
    nearest_documents(),
    aggregate_documents(),
)
