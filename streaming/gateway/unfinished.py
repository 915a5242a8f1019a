"""Bound the bytes that all sources of a stream together have sent without completing a line or a document."""


class Unfinished:
    """Counts the bytes that decoders may keep while they wait for the end of a line or of a document.

    A decoder that returns anything, elements or faults, keeps at most the bytes that it was fed last.

    Parameters
    ----------
    most_bytes : int
        Bound for all sources together.

    Examples
    --------
    >>> unfinished = Unfinished(10)
    >>> unfinished.count("a", 6, False), unfinished.count("b", 3, False), unfinished.count("b", 2, False)
    ([], [], ['a'])
    >>> unfinished.count("b", 4, True), unfinished.count("c", 6, False)
    ([], [])
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: dict[str, int] = {}

    def count(self, source: str, size: int, gave: bool) -> list[str]:
        """Count the bytes that a source sent.

        Parameters
        ----------
        source : str
        size : int
            Number of bytes.
        gave : bool
            Whether its decoder returned anything, elements or faults, for them.

        Returns
        -------
        list of str
            The sources whose decoders must be forgotten, because they keep the most.
        """
        self._kept[source] = size + (0 if gave else self._kept.get(source, 0))
        forgotten = []
        while sum(self._kept.values()) > self.most_bytes and len(self._kept) > 1:
            forgotten.append(max(self._kept, key=lambda name: self._kept[name]))
            del self._kept[forgotten[-1]]
        return forgotten

    def forget(self, source: str) -> None:
        """Stop counting a source: it has gone, or its document has ended."""
        self._kept.pop(source, None)
