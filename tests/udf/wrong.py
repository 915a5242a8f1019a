"""Filters of another package, of which some are wrong in every way that the engine must survive."""

import numpy as np


class Good:
    """Passes keys that begin with the argument."""

    def filter_element(self, elements, argument):
        return np.array([key.as_py().startswith(argument) for key in elements["key"]], dtype=bool)

    def filter_pair(self, elements, features, argument):
        return self.filter_element(elements, argument) & self.filter_element(features, argument)


class Answers:
    """Gives a wrong answer, the same for elements and pairs."""

    def filter_element(self, elements, argument):
        return self.answer(elements)

    def filter_pair(self, elements, features, argument):
        return self.answer(elements)


class Raises(Answers):
    def answer(self, elements):
        raise KeyError("altitude")


class Picky(Answers):
    """Fails on elements, not when it is tried on none."""

    def answer(self, elements):
        if elements.num_rows:
            raise KeyError("altitude")
        return np.zeros(0, dtype=bool)


class TooShort(Answers):
    def answer(self, elements):
        return np.ones(elements.num_rows - 1, dtype=bool)


class Numbers(Answers):
    def answer(self, elements):
        return np.ones(elements.num_rows)


class Lists(Answers):
    def answer(self, elements):
        return [True] * elements.num_rows


class Nothing(Answers):
    def answer(self, elements):
        pass


class Square(Answers):
    def answer(self, elements):
        return np.ones((elements.num_rows, 1), dtype=bool)


class Unmade(Answers):
    def __init__(self):
        raise OSError("no licence")


class Methodless:
    pass
