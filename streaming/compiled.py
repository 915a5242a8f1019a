"""Compile loops over arrays with Numba, for the few that numpy and Arrow would need many passes for.

It takes half a second to import Numba. So modules with compiled functions are imported by the functions that call them,
and by the fork server of the engine before it forks (`streaming.forkserver`).
"""

from collections.abc import Callable
from typing import Any

import numba


def compiled(*signatures: tuple) -> Callable[[Callable], Callable]:
    """Return a decorator that compiles a function when its module is imported.

    What was compiled is kept for other processes, next to the module or in the user's cache.

    Parameters
    ----------
    *signatures : tuple of numba types
        Of the parameters, for each combination of types that is needed. The functions take arrays, and call no others
        with them: a call would count references, which takes longer than what most functions do.
    """

    def of(function: Callable) -> Callable:
        try:
            return numba.njit([*signatures], cache=True, error_model="numpy")(function)
        except RuntimeError:  # neither folder can be written
            return numba.njit([*signatures], error_model="numpy")(function)

    return of


def readonly(kind: Any) -> Any:
    """Return the type of one-dimensional arrays of a kind of numbers that may be read-only."""
    return numba.types.Array(kind, 1, "C", readonly=True)
