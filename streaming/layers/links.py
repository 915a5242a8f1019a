"""The links of KML: an archive's first file may link to others within it; nothing outside is followed."""

import html
import mmap
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(rb"<(?:\w+:)?NetworkLink\b.*?<(?:\w+:)?href>(.*?)</(?:\w+:)?href>", re.DOTALL)
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
FIRST = "doc.kml"


@dataclass(frozen=True)
class LinkedFiles:
    """The files that a file of KML links to.

    Parameters
    ----------
    names : list of str
        The file itself, and all that it links to directly or over others, in this order.
    elsewhere : list of str
        Links that lead elsewhere, such as to an address.
    """

    names: list[str]
    elsewhere: list[str]


def first_of(names: list[str]) -> str:
    """Return the file of an archive that is read first.

    References
    ----------
    OGC KML 2.3 (12-007r2), section 8: it should be named doc.kml, and is the first in the archive otherwise.

    Examples
    --------
    >>> first_of(["files/a.kml", "Doc.KML"]), first_of(["x/b.kml", "c.kml"])
    ('Doc.KML', 'c.kml')
    """
    return min(names, key=lambda name: (posixpath.basename(name).lower() != FIRST, name.count("/")))


def follow(first: str, paths: Mapping[str, Path]) -> LinkedFiles:
    """Follow the links of a file within its archive.

    Parameters
    ----------
    first : str
        The file's name in the archive.
    paths : mapping of str to Path
        The archive's files of KML by name.

    Returns
    -------
    LinkedFiles
    """
    known = {posixpath.normpath(name).lower(): name for name in paths}
    followed = LinkedFiles([first], [])
    for name in followed.names:  # which grows
        for link in _links(paths[name]):
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(name), link.split("#")[0].replace("\\", "/")))
            target = None if ADDRESS.match(link) else known.get(unquote(inner).lower())
            if target is None:
                followed.elsewhere.append(link)
            elif target not in followed.names:
                followed.names.append(target)
    return followed


def _links(path: Path) -> Iterator[str]:
    if not path.stat().st_size:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        for found in LINK.finditer(text):
            link = found[1].strip().removeprefix(b"<![CDATA[").removesuffix(b"]]>").strip()
            yield html.unescape(link.decode(errors="replace"))
