"""How the sketchlet of a region is stored: each run of leaves as a part of its own."""

from streaming.servers.region.sketching import Sketchlet
from streaming.sketch.codec import decode, encode
from streaming.spaces import Space
from streaming.state.codec import HEAD, NOTHING, Codec, Tables, head_of, with_head


def sketchlet_codec(space: Space) -> Codec:
    """Return the codec of `Sketchlet` in a space."""

    def decoded(parts):
        streams, *heads = parts[HEAD].tables()
        named = zip(head_of(streams)["streams"], heads, strict=True)
        return Sketchlet(
            {stream: decode({**parts, HEAD: Tables([head])}, space, _name(stream)) for stream, head in named}
        )

    return Codec(lambda batch: Sketchlet(), _encoded, decoded)


def _encoded(state):
    parts, heads = {}, [with_head(NOTHING, {"streams": list(state.sketches)})]
    for stream, sketch in state.sketches.items():
        of_one = encode(sketch, _name(stream))
        heads += of_one.pop(HEAD).tables()
        parts |= of_one
    return {HEAD: Tables(heads)} | parts


def _name(stream):
    return f"leaves-{stream}"
