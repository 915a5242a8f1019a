"""How queries and layers are drawn, the same for everybody: a colour, and a line that is solid or dashed."""

from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

# Looks are numbered by their line, then by their colour: four lines in eight colours, for layers in six.
QUERY_LOOKS, LAYER_LOOKS = 32, 24


def look_field(looks: int) -> models.PositiveSmallIntegerField:
    """Return a field for one of so many looks."""
    return models.PositiveSmallIntegerField(
        _("look"),
        null=True,
        blank=True,
        validators=[MaxValueValidator(looks - 1)],
        help_text=_("The colour and the line of its shapes on the map. If it is empty, its number decides."),
    )


def is_look(value: object, looks: int) -> bool:
    """Return whether a value is one of so many looks, or None: none is chosen."""
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < looks)


def is_query_look(value: object) -> bool:
    """Return whether a value is a look of queries, or None."""
    return is_look(value, QUERY_LOOKS)
