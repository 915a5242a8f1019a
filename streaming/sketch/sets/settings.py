"""Which sets a sketch keeps, and how large they are."""

from dataclasses import dataclass

from streaming.errors import InvalidPlan
from streaming.property_columns import checked_name
from streaming.sketch.settings import DAY_US, InvalidSketch


class InvalidSets(InvalidSketch):
    """The settings of sets, or a question to them, break a rule."""


@dataclass(frozen=True)
class SetSettings:
    """Which sets are kept.

    The defaults find a value that is not there by mistake in 0.3 % of cases at 10,000 different values an entry, count
    different values within 4.6 % at 95 % confidence, and tell how often a value came within 0.2 % of all values.

    Parameters
    ----------
    features : tuple of str
        The features whose values are kept; `key` is the key of elements.
    cell_bits : int
        The length of an entry's geohash in bits, 0 to 48.
    time_bin_us : int
        The length of an entry's time bin, in microseconds.
    bloom_bits : int
        A Bloom filter has 2**bloom_bits bits; 6 to 27.
    bloom_hashes : int
        How many bits a value sets; 1 to 16.
    register_bits : int
        A HyperLogLog has 2**register_bits registers; 4 to 18.
    rows : int
        The rows of a count-min sketch; 1 to 16.
    width_bits : int
        A row has 2**width_bits counters; 4 to 24.
    most_bytes : int
        The memory budget. If all entries need more, cells and then time bins are merged.
    """

    features: tuple[str, ...]
    cell_bits: int = 8
    time_bin_us: int = DAY_US
    bloom_bits: int = 17
    bloom_hashes: int = 5
    register_bits: int = 11
    rows: int = 4
    width_bits: int = 10
    most_bytes: int = 64_000_000

    def __post_init__(self) -> None:
        if not self.features or len(set(self.features)) < len(self.features):
            raise InvalidSets(
                "features must be names that differ from each other; got %(features)s",
                features=f"{self.features!r:.200}",
            )
        for feature in self.features:
            try:
                checked_name(feature, "features")
            except InvalidPlan as error:
                raise InvalidSets.of(error) from None
        for name, (least, most) in _LIMITS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise InvalidSets(
                    "%(name)s must be an integer from %(least)s to %(most)s; got %(value)s",
                    name=name,
                    least=least,
                    most=most,
                    value=f"{value!r:.80}",
                )

    @property
    def dense_bytes(self) -> int:
        """The memory of the three sketches of an entry."""
        return (1 << self.bloom_bits >> 3) + (1 << self.register_bits) + (8 * self.rows << self.width_bits)

    @property
    def most_values(self) -> int:
        """An entry keeps so many different values themselves; the sketches take no more memory than more would."""
        return self.dense_bytes // VALUE_BYTES

    def position(self, feature: str) -> int:
        """Return the position of a feature; raise InvalidSets if its values are not kept."""
        if feature not in self.features:
            raise InvalidSets(
                "the feature of a set must be one of %(features)s; got %(feature)s",
                features=", ".join(self.features),
                feature=f"{feature!r:.80}",
            )
        return self.features.index(feature)

    def bits(self, level: int) -> int:
        """Return how many bits the cells of a level have."""
        return max(self.cell_bits - 2 * level, 0)

    def bin_us(self, level: int) -> int:
        """Return the length of the time bins of a level: they double once one cell is left."""
        return self.time_bin_us << min(max(0, level - (self.cell_bits + 1) // 2), _DOUBLINGS)

    @property
    def most_level(self) -> int:
        """The highest level, with one cell and the longest time bins."""
        return (self.cell_bits + 1) // 2 + _DOUBLINGS


# A hash, how often it came, and the number of its entry.
VALUE_BYTES = 24
_DOUBLINGS = 16
_LIMITS = {
    "cell_bits": (0, 48),
    "time_bin_us": (1_000_000, 2**45),
    "bloom_bits": (6, 27),
    "bloom_hashes": (1, 16),
    "register_bits": (4, 18),
    "rows": (1, 16),
    "width_bits": (4, 24),
    "most_bytes": (1, 2**50),
}
