"""What the sources of a stream have sent without completing it, bounded for all of them together."""


class Unfinished:
    """Counts the bytes that decoders may keep since they await the end of a line or of a document.

    A decoder that gives anything, elements or faults, keeps at most what it was last fed.

    Parameters
    ----------
    most_bytes : int
        For all sources together.

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
        """Count what a source sent.

        Parameters
        ----------
        source : str
        size : int
            Bytes.
        gave : bool
            Whether its decoder gave anything of them.

        Returns
        -------
        list of str
            The sources whose decoders must be forgotten: those that keep the most.
        """
        self._kept[source] = size + (0 if gave else self._kept.get(source, 0))
        forgotten = []
        while sum(self._kept.values()) > self.most_bytes and len(self._kept) > 1:
            forgotten.append(max(self._kept, key=lambda name: self._kept[name]))
            del self._kept[forgotten[-1]]
        return forgotten

    def forget(self, source: str) -> None:
        """Count a source no longer: it has gone, or its document ended."""
        self._kept.pop(source, None)
