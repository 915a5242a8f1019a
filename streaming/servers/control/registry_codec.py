"""How the registry is stored: as one JSON document."""

import pyarrow as pa

from streaming.servers.control.registry import Catalogue, Registry
from streaming.spaces import Space
from streaming.state.codec import HEAD, Codec, Tables


def registry_codec(space: Space, catalogue: Catalogue) -> Codec:
    """Return the codec of a space's registries; they find the features of layers by `catalogue`."""

    def decode(parts):
        (table,) = parts[HEAD].tables()
        return Registry.from_json(table["document"][0].as_py(), space, catalogue)

    return Codec(lambda batch: Registry(space, catalogue=catalogue), _encode, decode)


def _encode(registry):
    return {HEAD: Tables([pa.table({"document": pa.array([registry.to_json()], pa.large_binary())})])}
