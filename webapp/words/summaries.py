"""The first lines of the docstrings of kinds, which the administration shows beside their names."""

from django.utils.translation import gettext_noop as _

SUMMARIES = (
    # transports
    _("A recorded file, plain or compressed (.gz, .bz2), replayed at its recorded speed or another"),
    _("An HTTP address that is requested at intervals; each response is a document. An unchanged one is skipped"),
    _("A named pipe (made by mkfifo), opened again after its last writer has closed it"),
    _("Simulated objects that follow timetables by the clock, so a restart does not move any"),
    _("The gateway's standard input, read to its end: a pipe, a terminal or a file"),
    _("A connection to a TCP server that sends; Lookout connects again whenever it ends"),
    _("A TCP port to which clients connect and send; each client is a source of its own"),
    _("A UDP port that receives datagrams; each datagram is decoded by itself"),
    # decoders
    _('Decodes {"now": ..., "aircraft": [...]}; the list may also be called ac. See DocumentDecoder'),
    _("Decodes AIS messages in NMEA lines with pyais"),
    _("Decodes CSV. The first line names the columns; each row after it is an element"),
    _("Decodes GeoJSON features: points to point elements, other geometries to boxes that carry the geometry as WKB"),
    _("Decodes the vehicle positions of a feed message; ignores trip updates and alerts. See DocumentDecoder"),
    _("Decodes SBS-1 lines. A line with a position, or with other values once that is known, is an element"),
    # channels of alarms
    _("E-mail by a mail server"),
    _("A topic of an MQTT broker, with quality of service 1"),
    _("Notifications in a browser"),
    _("A chat with incoming webhooks like Slack's"),
    _("JSON by HTTP POST, signed, with an idempotency key"),
)


def first_line(kind: type) -> str:
    """Return the first line of the docstring of a class, without its full stop."""
    return (kind.__doc__ or "").strip().split("\n")[0].rstrip(".")
