"""What an import is asked for, what it may take, and what comes of it."""

from dataclasses import dataclass
from pathlib import Path

from streaming.layers.parts import Summary
from streaming.spaces import EARTH, Space


@dataclass(frozen=True)
class Wanted:
    """What the importer chooses.

    Parameters
    ----------
    crs : str
        The coordinate reference system, where it is not the file's own; empty for that.
    key : str
        The property that names a feature; empty for the file's own number or id of it.
    table : str
        Which of a file's tables; empty where it has one with geometry.
    """

    crs: str = ""
    key: str = ""
    table: str = ""


@dataclass(frozen=True)
class Limits:
    """What an import may take.

    Parameters
    ----------
    unpacked_bytes : int
        Of all files of an archive, and of a file that is none.
    members : int
        Files of an archive.
    features : int
        Of the layer.
    memory_bytes : int
        Of the process that reads.
    time_s : float
        From the beginning of that process to its end.
    """

    unpacked_bytes: int = 4 << 30
    members: int = 1_000
    features: int = 5_000_000
    memory_bytes: int = 4 << 30
    time_s: float = 900.0


@dataclass(frozen=True)
class Job:
    """An import.

    Parameters
    ----------
    path : Path
        Its suffix says what it is; see `unpack.SUFFIXES`.
    folder : Path
        Empty, on the disk of the store; everything that is written is written here.
    space : Space
        Of two dimensions at least.
    wanted : Wanted
    limits : Limits
    """

    path: Path
    folder: Path
    space: Space = EARTH
    wanted: Wanted = Wanted()
    limits: Limits = Limits()


@dataclass(frozen=True)
class Imported:
    """What came of a file.

    Parameters
    ----------
    part : Path
        The features as a part, to be adopted by a `store.LayerStore`.
    summary : Summary
    problems : list of (row, reason)
        The first features, counted from 1, that were left out, repaired or cut.
    problem_count : int
        Of all of them.
    """

    part: Path
    summary: Summary
    problems: list[tuple[int, str]]
    problem_count: int
