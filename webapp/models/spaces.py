"""Spaces: they define the dimensions of coordinates, and each has its own engine."""

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming import spaces
from streaming.errors import InvalidSpace
from webapp.models.audited import AuditedQuerySet
from webapp.words.text import SoundJSONField

EARTH = spaces.EARTH.name
# The keys of `streaming.operators.partitioners.PARTITIONERS`, in words.
PARTITIONERS = [
    ("kd", _("K-D tree: at the median of the elements")),
    ("quadtree", _("Quadtree: in four equal parts")),
    ("geohash", _("Geohash: in two equal parts")),
    ("grid", _("Uniform grid: never split")),
]


class Space(models.Model):
    """A named space; its own engine evaluates its streams and queries.

    Saving one publishes it to the gateway and the supervisor (`webapp.bus.definitions`).
    """

    name = models.CharField(
        _("name"), max_length=spaces.MAX_NAME_CHARACTERS, primary_key=True, help_text=_("Fixed once saved.")
    )
    title = models.CharField(_("title"), max_length=80, blank=True)
    definition = SoundJSONField(
        _("definition"),
        help_text=_('For instance {"dimensions": [{"name": "price", "unit": "USD", "lo": 0, "hi": 10000}]}.'),
    )
    partitioner = models.CharField(
        _("partitioner"),
        max_length=20,
        blank=True,
        choices=PARTITIONERS,
        help_text=_("What cuts the regions of the space. Empty: what the engine's setting says."),
    )
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("space")
        verbose_name_plural = _("spaces")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def parsed(self) -> spaces.Space:
        """The space that the definition describes.

        Raises
        ------
        InvalidSpace
            With the rule that the definition breaks, and the value.
        """
        if not isinstance(self.definition, dict):
            raise InvalidSpace(
                "a definition must be a JSON object; got %(definition)s", definition=f"{self.definition!r:.200}"
            )
        if "name" in self.definition:
            raise InvalidSpace(
                "the name has its own field; got %(name)s in the definition", name=f"{self.definition['name']!r:.80}"
            )
        return spaces.parse_space({"name": self.name, **self.definition})

    def clean(self) -> None:
        """Check the definition; it must not change while the space is in use."""
        super().clean()
        try:
            parsed = self.parsed
        except InvalidSpace as error:
            raise ValidationError(str(error)) from None
        if self.name == EARTH and parsed != spaces.EARTH:
            raise ValidationError(
                {"definition": gettext("%(earth)s is built in; its definition cannot change") % {"earth": EARTH}}
            )
        kept = Space.objects.filter(pk=self.name).first()
        if kept is not None and kept.parsed != parsed and (users := kept.users()):
            raise ValidationError(
                {
                    "definition": gettext("a space that is in use cannot change; %(name)s has %(users)s")
                    % {"name": self.name, "users": users}
                }
            )

    def users(self) -> str:
        """Return in words how many streams, layers and queries lie in this space; empty if there are none."""
        counts = {
            "streams": self.streams.count(),
            "layers": self.layers.count(),
            gettext("queries, cancelled ones too"): self.queries.count(),
        }
        return " and ".join(f"{count} {what}" for what, count in counts.items() if count)


def spaces_by_name() -> dict[str, spaces.Space]:
    """Return all spaces by name, the built-in one first."""
    found = {space.name: space.parsed for space in Space.objects.all()}
    return {EARTH: spaces.EARTH} | found
