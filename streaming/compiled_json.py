"""A compiled function that reads the numbers of JSON objects in one pass.

References
----------
Clinger, How to Read Floating Point Numbers Accurately (1990): where the digits make a whole number below 2**53 and the
power of ten is at most 10**22, both are exact, so a single division rounds correctly.
"""

import numba
import numpy as np

from streaming.compiled import compiled, readonly

QUOTE, BACKSLASH, COLON, COMMA, OPEN, CLOSE, MINUS, POINT, ZERO, NINE = (ord(sign) for sign in '"\\:,{}-.09')
SMALL_E, LARGE_E, SMALL_T, SMALL_F, SMALL_N, BLANK = (ord(sign) for sign in "eEtfn ")
# So many digits always make a whole number below 2**53.
MOST_DIGITS = 15
POWERS = 10.0 ** np.arange(MOST_DIGITS + 1)
# Places in the text have no sign. Otherwise each access would test whether its place counts from the end.
NONE, ONE, TWO, FOUR, FIVE, TEN = (np.uint64(number) for number in (0, 1, 2, 4, 5, 10))


@compiled(
    (
        readonly(numba.uint8),
        readonly(numba.int32),
        readonly(numba.int64),
        readonly(numba.uint8),
        numba.uint64[::1],
        numba.float64[:, :],
        numba.boolean[::1],
        numba.int64[::1],
        numba.int32[:, ::1],
    )
)
def scan(
    text: np.ndarray,
    offsets: np.ndarray,
    rows: np.ndarray,
    names: np.ndarray,
    name_ends: np.ndarray,
    numbers: np.ndarray,
    read: np.ndarray,
    open_cells: np.ndarray,
    open_texts: np.ndarray,
) -> int:
    """Read the numbers of K of N JSON objects, which are made without blanks.

    Parameters
    ----------
    text : ndarray of uint8
        The objects in UTF-8, one after the other.
    offsets : ndarray of int32, shape (N + 1,)
        Where each begins, and where the last ends.
    rows : ndarray of int64, shape (K,)
        Which objects are read.
    names : ndarray of uint8
        The names of F properties in UTF-8, one after the other.
    name_ends : ndarray of uint64, shape (F + 1,)
        Where each begins, and where the last ends.
    numbers : ndarray of float64, shape (F, K)
        Gets the numbers; NaN where there is none.
    read : ndarray of bool, shape (K,)
        Gets whether an object was read: not if it has blanks, a value that is an array or an object, or an escape in a
        name or in a value that is wanted.
    open_cells : ndarray of int64, shape (F * K,)
        Gets which numbers are left open, as places in `numbers` as if it were flat: those whose texts are strings, and
        those with many digits or an exponent.
    open_texts : ndarray of int32, shape (F * K, 2)
        Gets where the texts of these begin and end.

    Returns
    -------
    int
        How many numbers are left open.
    """
    left, many = 0, len(name_ends) - 1
    for row in range(len(rows)):
        for place in range(many):
            numbers[place, row] = np.nan
        at, end, place = np.uint64(offsets[rows[row]]), np.uint64(offsets[rows[row] + 1]), 0
        read[row] = at + TWO == end and text[at] == OPEN and text[at + ONE] == CLOSE
        if at + TWO >= end or text[at] != OPEN or text[end - ONE] != CLOSE:
            continue
        # Loops over digits need not test for the end, since they stop at the brace there.
        end -= ONE
        while at + ONE < end and text[at + ONE] == QUOTE:
            at += TWO
            # The name. Most objects have the same names in the same order, so the next one is tried first.
            named = -1
            for _ in range(many):
                place = 0 if place == many else place
                begins, length = name_ends[place], name_ends[place + 1] - name_ends[place]
                place += 1
                if at + length < end and text[at + length] == QUOTE:
                    same = NONE
                    while same < length and text[at + same] == names[begins + same]:
                        same += ONE
                    if same == length:
                        named = place - 1
                        at += length
                        break
            while at < end and text[at] != QUOTE and text[at] != BACKSLASH:
                at += ONE
            if at + TWO >= end or text[at] != QUOTE or text[at + ONE] != COLON:
                break
            at += TWO
            begins, sign, value, is_open = at, text[at], np.nan, False
            if sign == MINUS or ZERO <= sign <= NINE:
                at += np.uint64(sign == MINUS)
                first, point, whole = at, NONE, NONE
                while ZERO <= text[at] <= NINE:
                    whole = TEN * whole + np.uint64(text[at] - ZERO)
                    at += ONE
                if text[at] == POINT:
                    at += ONE
                    point = at
                    while ZERO <= text[at] <= NINE:
                        whole = TEN * whole + np.uint64(text[at] - ZERO)
                        at += ONE
                digits = at - first - np.uint64(point > NONE)
                is_open = text[at] == SMALL_E or text[at] == LARGE_E or not 0 < digits <= MOST_DIGITS
                if not is_open:
                    value = np.int64(whole) / POWERS[at - point if point else NONE]
                    value = -value if sign == MINUS else value
                while is_open and at < end and text[at] != COMMA and text[at] > BLANK:
                    at += ONE
            elif sign == QUOTE:
                is_open = True
                at += ONE
                begins = at
                while at < end and text[at] != QUOTE and (named < 0 or text[at] != BACKSLASH):
                    at += TWO if text[at] == BACKSLASH else ONE
                if at >= end or text[at] != QUOTE:
                    break
            elif sign in (SMALL_T, SMALL_F, SMALL_N):
                value = np.nan if sign == SMALL_N else np.float64(sign == SMALL_T)
                at += FIVE if sign == SMALL_F else FOUR
            else:
                break
            ends = at
            at += np.uint64(sign == QUOTE)
            if at > end or (at < end and text[at] != COMMA):
                break
            if named >= 0 and not is_open:
                numbers[named, row] = value
            elif named >= 0:
                if left == len(open_cells):  # names repeat in an object
                    break
                open_cells[left] = named * numbers.shape[1] + row
                open_texts[left, 0], open_texts[left, 1] = begins, ends
                left += 1
            read[row] = at == end
    return left
