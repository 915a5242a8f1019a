"""Base maps that operators add to the built-in map."""

import re
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.machine.tiles import BrokenMap, map_format
from webapp.models.audited import AuditedQuerySet

MOST_ZOOM = 24
# A host that may become a source of the Content-Security-Policy; `{s}.` stands for Leaflet's subdomains.
HOST = re.compile(r"(\{s\}\.)?([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


class BaseMap(models.Model):
    """A map below the objects: tiles of a server, a WMS, or a file in the state folder."""

    XYZ, WMS, FILE = "xyz", "wms", "file"
    KINDS = [(XYZ, _("tile server (XYZ)")), (WMS, _("WMS")), (FILE, _("MBTiles or PMTiles file"))]

    name = models.CharField(_("name"), max_length=60, unique=True)
    kind = models.CharField(_("kind"), max_length=4, choices=KINDS, default=XYZ)
    address = models.CharField(
        _("address"),
        max_length=500,
        help_text=_(
            "Of tiles: https://tile.example.org/{z}/{x}/{y}.png. Of a WMS: its address, without a question. "
            "Of a file: its name in the folder maps of the state folder, such as town.mbtiles."
        ),
    )
    layers = models.CharField(
        _("layers"), max_length=500, blank=True, help_text=_("Of a WMS: their names, with commas.")
    )
    attribution = models.CharField(
        _("attribution"), max_length=300, blank=True, help_text=_("Shown on the map, as text.")
    )
    min_zoom = models.PositiveSmallIntegerField(_("least zoom"), default=0, validators=[MaxValueValidator(MOST_ZOOM)])
    max_zoom = models.PositiveSmallIntegerField(
        _("largest zoom"),
        default=18,
        validators=[MaxValueValidator(MOST_ZOOM)],
        help_text=_("Beyond it, tiles are enlarged."),
    )
    default = models.BooleanField(_("default"), default=False, help_text=_("Shown until a user chooses another one."))

    objects = AuditedQuerySet.as_manager()

    class Meta:
        verbose_name = _("base map")
        verbose_name_plural = _("base maps")
        base_manager_name = "objects"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        """Check the zooms and the address; for a file, also its content."""
        if self.min_zoom is not None and self.max_zoom is not None and self.min_zoom > self.max_zoom:
            raise ValidationError(
                {
                    "max_zoom": gettext("must be at least the least zoom, %(min_zoom)s; got %(max_zoom)s")
                    % {"min_zoom": self.min_zoom, "max_zoom": self.max_zoom}
                }
            )
        if self.kind == self.FILE:
            self._check_file()
            return
        parts = urlsplit(self.address)
        if parts.scheme not in ("http", "https") or not HOST.fullmatch(parts.netloc) or re.search(r"\s", self.address):
            raise ValidationError(
                {
                    "address": gettext("must begin with http:// or https:// and a host; got %(address)s")
                    % {"address": f"{self.address!r}"}
                }
            )
        if self.kind == self.XYZ and not all(part in self.address for part in ("{z}", "{x}", "{y}")):
            raise ValidationError(
                {
                    "address": gettext("must have {z}, {x} and {y} in it; got %(address)s")
                    % {"address": f"{self.address!r}"}
                }
            )
        if self.kind == self.WMS and not self.layers:
            raise ValidationError({"layers": _("a WMS needs the names of its layers")})

    def _check_file(self) -> None:
        try:
            map_format(settings.MAPS_DIR, self.address)
        except BrokenMap as error:
            raise ValidationError({"address": str(error)}) from None

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the map. If it is the default, no other map is the default any more."""
        super().save(*args, **kwargs)
        if self.default:
            BaseMap.objects.exclude(pk=self.pk).update(default=False)

    @property
    def image_source(self) -> str:
        """The source of its images for a Content-Security-Policy; empty if they come from this site."""
        if self.kind == self.FILE:
            return ""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.replace('{s}.', '*.')}"
