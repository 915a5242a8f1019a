"""What hypothesis draws: boxes, plans and elements on a coarse lattice, so that edges meet often."""

import math

from hypothesis import strategies as st

from streaming.plans import parse_plan

STREAMS = ("ships", "ships", "ships", "buses")
KINDS = ("cargo", "tanker")

longitudes = st.sampled_from([-180.0, -179.0, -1.0, 0.0, 1.0, 2.0, 179.0, 179.5])
latitudes = st.sampled_from([-90.0, -1.0, 0.0, 1.0, 2.0, 60.0, 89.0])
altitudes = st.sampled_from([0.0, 100.0, 5000.0])
sizes = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 3.0, 200.0])


@st.composite
def corners(draw):
    """A box of two or three dimensions, crossing the antimeridian now and then."""
    lon, lat, alt = draw(longitudes), draw(latitudes), draw(altitudes)
    width, height = (
        draw(st.sampled_from([0.0, 1.0, 2.5, 20.0, 200.0, 360.0])),
        draw(st.sampled_from([1.0, 30.0, 90.0, 170.0])),
    )
    lo, hi = [lon, lat], [lon + width, min(90.0, lat + height)]
    if draw(st.integers(0, 3)) == 0:
        lo, hi = [*lo, alt], [*hi, alt + 1000.0]
    return {"lo": lo, "hi": hi}


steps = st.one_of(
    st.builds(lambda a: {"enlarge_factor": a}, st.sampled_from([0.5, 1.0, 2.0, 3.0])),
    st.builds(lambda a: {"enlarge_value": a}, st.sampled_from([0.0, 0.5, 1.0])),
    st.builds(lambda a: {"enlarge_m": a}, st.sampled_from([0.0, 60_000.0, 120_000.0])),
)


@st.composite
def plans(draw, emit=("changes",)):
    """A valid range plan."""
    document = {
        "stream": draw(st.sampled_from(STREAMS)),
        "report": draw(st.sampled_from(["inside", "inside", "outside"])),
    }
    for name in draw(st.sampled_from([["area"], ["compare"], ["area"], ["area", "compare"]])):
        document[name] = draw(corners())
    document["transform"] = draw(st.lists(steps, max_size=2))
    document["where"] = draw(st.sampled_from(["", "", "", "", "kind = 'cargo'", "speed_mps > 3"]))
    document["emit"] = draw(st.sampled_from(emit))
    return parse_plan(document)


@st.composite
def boxes(draw):
    """Bounds of an element on earth: mostly points, with or without altitude."""
    lon, lat = draw(longitudes), draw(latitudes)
    width, height = draw(sizes), draw(st.sampled_from([0.0, 0.0, 0.5, 2.0]))
    low, high = [lon, lat], [lon + width, min(90.0, lat + height)]
    altitude = draw(st.one_of(st.none(), altitudes))
    low.append(-math.inf if altitude is None else altitude)
    high.append(math.inf if altitude is None else altitude)
    return low + high


properties = st.fixed_dictionaries({}, optional={"kind": st.sampled_from(KINDS), "speed_mps": st.integers(0, 6)})
