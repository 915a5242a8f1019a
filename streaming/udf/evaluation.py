"""Evaluation of user-defined filters, such that a faulty filter does no harm to the caller."""

import functools
import logging
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from streaming.elements import element_schema
from streaming.errors import InvalidFilter, LookoutError
from streaming.language import gettext
from streaming.spaces import Space
from streaming.udf.base import COLUMNS
from streaming.udf.registry import filter_of

logger = logging.getLogger(__name__)

MAX_REASON_CHARACTERS = 500


class Judged(NamedTuple):
    """The result of a filter.

    Parameters
    ----------
    passes : ndarray of bool, shape (N,)
        Which rows pass; none if the filter failed.
    error : str or None
        If the filter failed, its name and the reason.
    """

    passes: np.ndarray
    error: str | None


def evaluate_element(name: str, elements: pa.RecordBatch, argument: str = "") -> Judged:
    """Evaluate a filter over elements, or over features alone. If the filter raises an error, return it.

    Parameters
    ----------
    name : str
        See `streaming.udf.filter_names`.
    elements : pyarrow.RecordBatch, N rows
        With `COLUMNS`, and perhaps more.
    argument : str

    Examples
    --------
    >>> batch = pa.record_batch({"key": ["bus 1", "bus 2"]})
    >>> evaluate_element("key_equals", batch, "bus 2").passes.tolist()
    [False, True]
    >>> evaluate_element("nearest", batch).error  # doctest: +ELLIPSIS
    "the filter nearest failed: udf must be one of ...; got 'nearest'"
    """
    return _judged(name, "filter_element", argument, elements)


def evaluate_pair(name: str, elements: pa.RecordBatch, features: pa.RecordBatch, argument: str = "") -> Judged:
    """Evaluate a filter over pairs: pair i is row i of both batches. Otherwise the same as `evaluate_element`."""
    return _judged(name, "filter_pair", argument, elements, features)


def check_filter(name: str, argument: str, space: Space, pairs: bool = False) -> None:
    """Try a filter on batches without rows.

    Parameters
    ----------
    name, argument : str
    space : Space
        The space of the elements that it will see.
    pairs : bool
        Whether it will see pairs.

    Raises
    ------
    LookoutError
        If the filter is not installed, refuses its argument, or fails otherwise.
    """
    columns = pa.schema([element_schema(space).field(column) for column in COLUMNS])
    none = pa.RecordBatch.from_pylist([], schema=columns)
    judged = evaluate_pair(name, none, none, argument) if pairs else evaluate_element(name, none, argument)
    if judged.error is not None:
        raise InvalidFilter(judged.error)


def _judged(name: str, method: str, argument: str, *batches: pa.RecordBatch) -> Judged:
    rows = batches[0].num_rows
    try:
        passes = getattr(filter_of(name), method)(*batches, argument)
        _check_answer(passes, rows)
        return Judged(passes, None)
    # Filters are other people's code: a faulty one may cost its own queries their answer, but no other query.
    except Exception as error:
        reason = str(error) if isinstance(error, LookoutError) else f"{type(error).__name__}: {error}"
        told = {"name": name, "reason": f"{reason:.{MAX_REASON_CHARACTERS}}"}
        words = gettext("the filter %(name)s failed: %(reason)s") % told
        _log_once(words)
        return Judged(np.zeros(rows, dtype=bool), words)


@functools.lru_cache(maxsize=256)
def _log_once(error: str) -> None:
    """Log a failure the first time only: a filter that fails does so several times a second."""
    logger.error("%s; what it should judge does not pass", error)


def _check_answer(passes: Any, rows: int) -> None:
    """Raise LookoutError unless a filter's answer is one bool for each row."""
    is_array = isinstance(passes, np.ndarray)
    if not is_array or passes.dtype != bool or passes.shape != (rows,):
        array = gettext("an array of %(dtype)s of shape %(shape)s")
        got = array % {"dtype": passes.dtype, "shape": passes.shape} if is_array else type(passes).__name__
        raise InvalidFilter(
            "a filter must return an array of bool of shape (%(rows)s,); got %(got)s", rows=rows, got=got
        )
