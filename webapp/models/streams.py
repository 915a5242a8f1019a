"""Streams: where their elements come from, and how their bytes are decoded."""

from collections.abc import Callable, Iterable
from typing import cast

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from streaming.decoders.options import OptionDescription
from streaming.errors import InvalidOptions
from streaming.gateway.clock import MAX_AHEAD_S
from streaming.sketch.settings import InvalidSketch
from streaming.sketch.stream import parse_stream_sketch
from webapp.models.audited import AuditedQuerySet
from webapp.models.spaces import EARTH, Space
from webapp.words.text import SoundJSONField

# A thousand years: beyond, there are no dates.
MAX_RETENTION_S = 1000 * 366 * 86_400
# The origin of elements by transport; elements of other transports may be live.
ORIGINS = {"simulator": "simulated", "file": "recorded"}
NAME_RULE = RegexValidator(r"^[a-z][a-z0-9_-]*$", _("use lower case letters, digits, - and _, a letter first"))


class Stream(models.Model):
    """A named stream of elements, with its transport and decoder.

    Saving one publishes its definition to the gateway (`webapp.bus.definitions`).
    """

    name = models.SlugField(
        _("name"), max_length=40, unique=True, validators=[NAME_RULE], help_text=_("Fixed once saved.")
    )
    title = models.CharField(_("title"), max_length=80)
    icon = models.CharField(
        _("icon"), max_length=20, default="dot", help_text=_("Shape on the map, such as ship, aircraft, bus, dot.")
    )
    space = models.ForeignKey(
        Space,
        models.PROTECT,
        default=EARTH,
        related_name="streams",
        verbose_name=_("space"),
        help_text=_("Fixed once saved."),
    )
    enabled = models.BooleanField(_("enabled"), default=True)
    ttl_s = models.FloatField(
        _("time to live [s]"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_("An object without a report for this many seconds leaves every answer. Empty: never."),
    )
    max_ahead_s = models.FloatField(
        _("most ahead of the clock [s]"),
        default=MAX_AHEAD_S,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Elements whose time is further in the future are malformed; one would hide its object. Empty: 300."
        ),
    )
    max_age_s = models.FloatField(
        _("most behind the clock [s]"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=_(
            "Reports whose time is longer ago change no answer; they are stored if the stream is. Empty: any age."
        ),
    )
    stored = models.BooleanField(
        _("store elements"),
        default=False,
        help_text=_("Store every element in the history. Otherwise only the newest one of each object is kept."),
    )
    retention_s = models.FloatField(
        _("retention [s]"),
        null=True,
        blank=True,
        validators=[MinValueValidator(60), MaxValueValidator(MAX_RETENTION_S)],
        help_text=_("Stored elements older than this are deleted, a file at a time. Empty: never. A day is 86400."),
    )
    sketch = SoundJSONField(
        _("sketch"),
        null=True,
        blank=True,
        help_text=_("Summarise what has passed, to be asked later without keeping the elements. Empty: no sketch."),
    )
    transport = models.CharField(
        _("transport"), max_length=40, help_text=_("How bytes arrive: a kind of docs/transports.md.")
    )
    transport_options = SoundJSONField(_("transport options"), default=dict, blank=True)
    decoder = models.CharField(
        _("decoder"), max_length=40, help_text=_("How bytes are read: a kind of docs/decoders.md.")
    )
    decoder_options = SoundJSONField(_("decoder options"), default=dict, blank=True)
    created = models.DateTimeField(_("created"), auto_now_add=True)

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("stream")
        verbose_name_plural = _("streams")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.title or self.name

    @property
    def space_name(self) -> str:
        """The name of its space."""
        return cast("str", self.space_id)  # django-stubs thinks that a key with a default may be None

    def clean(self) -> None:
        """Check the options by building transport and decoder; name and space of a saved stream must not change."""
        super().clean()
        if self.max_ahead_s is None:
            self.max_ahead_s = MAX_AHEAD_S
        errors: dict[str, str] = {}
        for field in ("transport", "decoder"):
            if getattr(self, field):
                errors |= self._option_errors(field)
        errors |= self._sketch_errors()
        if kept := Stream.objects.filter(pk=self.pk).first():
            for field, given, fixed in (("name", self.name, kept.name), ("space", self.space_id, kept.space_id)):
                if given != fixed:
                    errors[field] = gettext("the %(field)s of a stream cannot change; it is %(fixed)s") % {
                        "field": field,
                        "fixed": f"{fixed!r}",
                    }
        if errors:
            raise ValidationError(errors)

    def definition(self) -> dict:
        """Return the definition of this stream for the gateway."""
        return {
            "name": self.name,
            "space": self.space_id,
            "enabled": self.enabled,
            "ttl_s": self.ttl_s,
            "stored": self.stored,
            "sketch": self.sketch,
            "max_ahead_s": self.max_ahead_s,
            "max_age_s": self.max_age_s,
            "transport": {"kind": self.transport, **self.transport_options},
            "decoder": {"kind": self.decoder, **self.decoder_options},
        }

    def summary(self) -> dict:
        """Return the description of this stream for clients."""
        summary = {"name": self.name, "title": self.title, "icon": self.icon, "enabled": self.enabled}
        summary |= {"space": self.space_id, "stored": self.stored, "retention_s": self.retention_s}
        summary |= {"sketch": self.sketch}
        return summary | {"origin": ORIGINS.get(self.transport)}

    def _sketch_errors(self) -> dict[str, str]:
        """Return the error of the sketch's settings, by field."""
        space = Space.objects.filter(pk=self.space_id).first()
        if self.sketch is None or space is None:
            return {}
        try:
            parse_stream_sketch(self.sketch, space.parsed)
        except InvalidSketch as error:
            return {"sketch": str(error)}
        return {}

    def _option_errors(self, field: str) -> dict[str, str]:
        """Return the validation errors of the transport's or the decoder's kind and options, by field."""
        kind, options = getattr(self, field), getattr(self, f"{field}_options")
        if not isinstance(options, dict):
            return {
                f"{field}_options": gettext("options must be a JSON object; got %(options)s")
                % {"options": f"{options!r}"}
            }
        if "kind" in options:
            return {
                f"{field}_options": gettext("the kind has its own field; got %(options)s among the options")
                % {"options": f"{options['kind']!r}"}
            }
        _, make = _makers(field)
        if kind not in kinds_of(field):
            return {
                field: gettext("%(field)s must be one of %(kinds_of)s; got %(kind)s")
                % {"field": field, "kinds_of": ", ".join(kinds_of(field)), "kind": f"{kind!r}"}
            }
        space = Space.objects.filter(pk=self.space_id).first()
        if space is None:
            return {}  # the error of the field `space` says so already
        try:
            make({"kind": kind, **options}, self.name or "unnamed", space.parsed)
        except InvalidOptions as error:
            return {f"{field}_options": str(error)}
        return {}


def kinds_of(field: str) -> list[str]:
    """Return the available kinds of transports or decoders, sorted."""
    kinds, _ = _makers(field)
    return sorted(kinds())


def options_of(field: str, kind: str) -> list[OptionDescription] | None:
    """Return the options that a kind of transport or decoder declares, in order; None if it declares none."""
    if field == "decoder":
        from streaming.decoders.registry import decoder_class

        return decoder_class(kind).options.describe()
    from streaming.gateway.transports import describe_transport

    return describe_transport(kind)


def summary_of(field: str, kind: str) -> str:
    """Return the summary line of a kind's docstring, without full stop, backticks and what follows "; see"."""
    if field == "decoder":
        from streaming.decoders.registry import decoder_class

        made: type = decoder_class(kind)
    else:
        from streaming.gateway.transports import transport_class

        made = transport_class(kind)
    return (made.__doc__ or "").strip().split("\n")[0].rstrip(".").replace("`", "").split("; see")[0]


def _makers(field: str) -> tuple[Callable[[], Iterable[str]], Callable[..., object]]:
    """Return two functions: one lists the kinds, one makes a decoder or transport of (definition, name, space)."""
    # Imported late: they load the libraries of their formats, which a process that edits no streams does not need.
    if field == "decoder":
        from streaming.decoders.registry import decoder_kinds, make_decoder

        return decoder_kinds, make_decoder
    from streaming.gateway.transports import make_transport, transport_kinds

    return transport_kinds, lambda definition, *_: make_transport(definition, settings.FEED_ACCESS)
