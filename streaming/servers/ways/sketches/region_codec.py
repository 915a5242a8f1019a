"""How the sketchlet of a region is stored: each run of leaves, and of sets, as a part of its own."""

from streaming.servers.ways.sketches.region import Sketchlet
from streaming.sketch import codec as sketches
from streaming.sketch.sets import codec as sets
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Parts, StatePart, Tables, head_of, with_head


def sketchlet_codec(space: Space) -> Codec:
    """Return the codec of `Sketchlet` in a space."""

    def decoded(parts: Parts) -> Sketchlet:
        first, *heads = parts[HEAD].tables()
        head = head_of(first)
        tables = iter(heads)
        of_streams = {
            stream: sketches.decode({**parts, HEAD: Tables([next(tables)])}, space, _leaves(stream))
            for stream in head["sketches"]
        }
        of_sets = {
            stream: sets.decode({**parts, HEAD: Tables([next(tables)])}, _sets(stream)) for stream in head["sets"]
        }
        return Sketchlet(of_streams, of_sets)

    return Codec(lambda batch: Sketchlet(), _encoded, decoded)


def _encoded(state: Sketchlet) -> Parts:
    heads = [with_head(NOTHING, {"sketches": list(state.sketches), "sets": list(state.sets)})]
    parts: dict[str, StatePart] = {}
    encoded = [sketches.encode(sketch, _leaves(stream)) for stream, sketch in state.sketches.items()]
    encoded += [sets.encode(known, _sets(stream)) for stream, known in state.sets.items()]
    for one in encoded:
        heads += one.pop(HEAD).tables()
        parts |= one
    return {HEAD: Tables(heads)} | parts


def _leaves(stream: int) -> str:
    return f"leaves-{stream}"


def _sets(stream: int) -> str:
    return f"sets-{stream}"
