"""An import: its options, its limits and its result."""

from dataclasses import dataclass
from pathlib import Path

from streaming.layers.parts import FeatureSummary
from streaming.spaces import EARTH, Space


@dataclass(frozen=True)
class ImportOptions:
    """The options that a user chooses for an import.

    Parameters
    ----------
    crs : str
        The coordinate reference system that replaces the file's own; empty to use the file's.
    key : str
        The property with the keys of the features; empty to use the file's own ids or numbers.
    table : str
        The table of the file to import, or ``*`` for all as one layer; empty if the file has only one with geometry.
    encoding : str
        The encoding of the file's texts, in a form that Python knows; empty to use what the file says.
    edges : str
        ``keep`` leaves edges over more than 180 degrees of longitude as they are; empty takes the shorter way.
    """

    crs: str = ""
    key: str = ""
    table: str = ""
    encoding: str = ""
    edges: str = ""


@dataclass(frozen=True)
class ImportLimits:
    """The limits of an import.

    Parameters
    ----------
    unpacked_bytes : int
        The size of all files of an archive together, or of a file that is not an archive.
    members : int
        The number of files in an archive.
    features : int
        The number of features of the layer.
    memory_bytes : int
        The memory of the process that reads the file.
    time_s : float
        The time of that process from start to end.
    reserve_bytes : int
        How much of the disk an archive leaves free, whatever it holds.
    """

    unpacked_bytes: int = 4 << 30
    members: int = 1_000
    features: int = 5_000_000
    memory_bytes: int = 4 << 30
    time_s: float = 900.0
    reserve_bytes: int = 0


@dataclass(frozen=True)
class Job:
    """An import.

    Parameters
    ----------
    path : Path
        The file; its suffix says its format, see `unpack.SUFFIXES`.
    folder : Path
        An empty folder on the same disk as the store. The import writes nowhere else.
    space : Space
        With at least two dimensions.
    wanted : ImportOptions
    limits : ImportLimits
    """

    path: Path
    folder: Path
    space: Space = EARTH
    wanted: ImportOptions = ImportOptions()
    limits: ImportLimits = ImportLimits()


@dataclass(frozen=True)
class Imported:
    """The result of an import.

    Parameters
    ----------
    part : Path
        The part with the features, for `store.LayerStore.adopt`.
    summary : FeatureSummary
    problems : list of (row, reason)
        What the file as a whole was taken for, with None as the row; then the first features that were left out,
        repaired or cut. Rows count from 1.
    problem_count : int
        The number of all such features.
    """

    part: Path
    summary: FeatureSummary
    problems: list[tuple[int | None, str]]
    problem_count: int
