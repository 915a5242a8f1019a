"""Events: entries to and exits from the answers of saved queries, and how far their log has been recorded."""

from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from webapp.models.queries import Query


class Event(models.Model):
    """An object that entered (`+`) or left (`-`) the answer of a saved query; in a join, with its partner.

    For an aggregate, the object is the group, and the partner is the threshold that the group's value crossed (`+`) or
    no longer crosses (`-`). The properties hold the value. For an encounter, the time is its beginning or its end, the
    place is where the object was when the two were nearest, and the properties are `since`, `until` and `distance`.
    If an entry or exit was interpolated between two reports, the properties also have `interpolated`, and the times of
    these, `interpolated_from` and `interpolated_to`.
    """

    query = models.ForeignKey(Query, models.CASCADE, related_name="events", verbose_name=_("query"))
    batch = models.PositiveBigIntegerField(_("batch"))
    key = models.CharField(_("object"), max_length=200, db_index=True)
    sign = models.CharField(_("sign"), max_length=1, choices=[("+", "+ entered"), ("-", "- left")])
    reason = models.CharField(_("reason"), max_length=20)
    time = models.DateTimeField(_("event time"))
    lon = models.FloatField(_("longitude [deg]"), null=True)
    lat = models.FloatField(_("latitude [deg]"), null=True)
    bounds = models.JSONField(_("bounds"), default=list)
    properties = models.JSONField(_("properties"), default=dict)
    partner = models.CharField(
        _("partner"),
        max_length=200,
        blank=True,
        help_text=_("For a join: the key of the feature. For an aggregate: the threshold."),
    )

    heard = models.DateTimeField(
        _("heard"), null=True, help_text=_("When the gateway got the newest report of the batch that told the event.")
    )
    told = models.DateTimeField(_("told"), null=True, help_text=_("When the engine told the event."))
    recorded = models.DateTimeField(_("recorded"), null=True, help_text=_("When the event was stored here."))

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        ordering = ["-id"]
        indexes = [models.Index(fields=["query", "-id"])]

    def __str__(self) -> str:
        return f"{self.text} {self.time:%Y-%m-%d %H:%M:%S}"

    @property
    def text(self) -> str:
        """The event in words."""
        if "aggregate" in self.query.plan:
            return f"{self.query.name}{self.key and ', ' + self.key}: {self._crossing}"
        return f"{self.sign}{self.key}{self.partner and ' with ' + self.partner}"

    @property
    def _crossing(self) -> str:
        value = self.properties.get("value")
        now = "" if value is None else gettext(" (now %(value)s)") % {"value": f"{value:.6g}"}
        return f"{'' if self.sign == '+' else 'no longer '}{self.partner}{now}"


class EventCursor(models.Model):
    """How far a space's log of events has been recorded. It moves in the transaction that stores the events.

    After events were lost, `check_at` is when the incidents of the space are to be compared with the answers.
    """

    space = models.CharField(max_length=40, primary_key=True)
    last_id = models.CharField(max_length=40, default="0-0")
    epoch = models.CharField(max_length=80, blank=True)
    batch = models.BigIntegerField(default=-1)
    check_at = models.DateTimeField(null=True)
