"""Who has no room if all together ask for more than there is: max-min fairness among owners.

References
----------
D. Bertsekas, R. Gallager, "Data Networks", 1992, section 6.5.2: max-min fair allocation, found by filling all alike.
"""

import numpy as np

from streaming.operators.runs import first_of_runs


def fair_share(demands: np.ndarray, room: float) -> float:
    """Return how much each owner may have at most, so that all have as much as they ask for or alike.

    Parameters
    ----------
    demands : ndarray of float64, shape (O,)
        What each owner asks for.
    room : float
        How much there is for all of them.

    Returns
    -------
    float
        Infinite if there is room for all.

    Examples
    --------
    >>> fair_share(np.array([1.0, 8.0, 6.0]), 11)
    5.0
    """
    asked = np.sort(demands)
    each = (room - (np.cumsum(asked) - asked)) / np.arange(len(asked), 0, -1)
    over = np.flatnonzero(asked > each)
    return float(each[over[0]]) if len(over) else np.inf


def beyond_share(cost: np.ndarray, owner: np.ndarray, number: np.ndarray, room: float) -> np.ndarray:
    """Tell which items are left out, so that there is room for the others: the most expensive of who asks for most.

    All owners get the same, from their cheapest items on, until the next item has no room. So an owner who asks for no
    more than the fair share loses nothing, and whoever loses an item would have more than the fair share with it.

    Parameters
    ----------
    cost : ndarray of float64, shape (I,)
    owner, number : ndarray of int64, shape (I,)
        The owner of each item, and its own number, by which items of equal cost are ordered.
    room : float

    Returns
    -------
    ndarray of bool, shape (I,)
        Does not depend on the order of the items.

    Examples
    --------
    >>> beyond_share(np.array([1.0, 2.0, 6.0, 4.0]), np.array([7, 8, 8, 8]), np.arange(4), 10).tolist()
    [False, False, True, False]
    """
    order = np.lexsort((number, cost, owner))
    first, cost = first_of_runs(owner[order]), cost[order]
    before = np.cumsum(cost) - cost
    # What the owner has with the item and all cheaper ones.
    with_it = before + cost - before[first][np.cumsum(first) - 1]
    turn = np.lexsort((number[order], with_it))
    out = np.zeros(len(cost), dtype=bool)
    out[order[turn]] = np.cumsum(cost[turn]) > room
    return out
