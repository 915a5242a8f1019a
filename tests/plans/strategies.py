"""Documents of plans that `parse_plan` accepts, of every kind and with every key, there or not."""

from hypothesis import strategies as st

from streaming.plans import EMITS, PREDICATES, REPORTS
from streaming.plans.queries import SOURCES
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
wheres = st.sampled_from(["", " ", "kind = 'cargo'", "speed_mps > 3"])
udfs = st.one_of(
    st.fixed_dictionaries({"udf": texts}, optional={"argument": st.text(max_size=8)}),
    st.fixed_dictionaries({"argument": st.text(max_size=8), "udf": texts}),
)
filters = st.one_of(
    st.fixed_dictionaries({"key": texts}), st.fixed_dictionaries({"box": boxes}), udfs
)  # in the order of their forms
amounts = st.one_of(st.integers(0, 50), st.floats(0, 1e9))
common = {
    "transform": st.lists(steps, max_size=3),
    "where": wheres,
    "filters": st.lists(filters, max_size=3),
    "emit": st.sampled_from(EMITS),
}
boxes_or_null = st.one_of(st.none(), boxes)


@st.composite
def partners(draw):
    """Return what a join says of its partners."""
    source = draw(st.sampled_from(SOURCES))
    optional = {"where": wheres, "filters": st.lists(filters, max_size=2), "pair_filters": st.lists(udfs, max_size=2)}
    document = {source: draw(texts)} | draw(st.fixed_dictionaries({}, optional=optional))
    if draw(st.booleans()):
        document[draw(st.sampled_from([other for other in SOURCES if other != source]))] = None
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
    return draw(st.fixed_dictionaries({"stream": texts, needed: boxes}, optional=optional))


@st.composite
def join_documents(draw):
    """Return the document of a join."""
    needed = {"stream": texts, "kind": st.just("join"), "join": partners()}
    return draw(st.fixed_dictionaries(needed, optional=common | {"area": boxes_or_null}))


documents = st.one_of(range_documents(), join_documents())
