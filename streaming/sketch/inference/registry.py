"""The models that forecast a series: the built-in ones, and those that other packages offer by an entry point."""

from functools import cache
from importlib.metadata import EntryPoint

from streaming.entry_points import known_kinds
from streaming.sketch.inference.series import Model
from streaming.sketch.settings import InvalidSketch

GROUP = "lookout.models"

BUILT_IN = {
    "harmonic": "streaming.sketch.inference.harmonic:HarmonicModel",
    "holt_winters": "streaming.sketch.inference.holt_winters:HoltWintersModel",
}


def _models() -> dict[str, EntryPoint]:
    return known_kinds(GROUP, BUILT_IN)


def model_names() -> list[str]:
    """Return the names of all models that are installed.

    Examples
    --------
    >>> "harmonic" in model_names()
    True
    """
    return list(_models())


@cache
def model_of(name: str) -> Model:
    """Return the model with a name, the same one every time.

    Raises
    ------
    InvalidSketch
        If no such model is installed, or it cannot be loaded.
    """
    if name not in _models():
        raise InvalidSketch(
            "model must be one of %(value)s; got %(name)s", value=", ".join(_models()), name=f"{name!r:.80}"
        )
    try:
        model: Model = _models()[name].load()()
        return model
    # This runs another package's code, which may raise anything; its error is the reason in the message.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidSketch(
            "model must be one that loads; got %(name)s: %(reason)s", name=f"{name!r:.80}", reason=reason
        ) from error
