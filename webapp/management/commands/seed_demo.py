"""``manage.py seed_demo``: make the demonstration's streams."""

from django.db import transaction

from streaming.gateway.presets import DEMO_STREAMS
from webapp.management.prepared import PreparedCommand
from webapp.models import Stream


class Command(PreparedCommand):
    """Make those of the demonstration's streams that are missing; the others stay as they are."""

    help = "Make the demonstration's streams that are missing, and the presets of public feeds, switched off."

    def handle(self, *_, **__):
        """Make them."""
        known = set(Stream.objects.values_list("name", flat=True))
        missing = [stream for stream in DEMO_STREAMS if stream["name"] not in known]
        with transaction.atomic():
            for stream in missing:
                self._make(stream)
        self.stdout.write(f"{len(missing)} streams made, {len(known)} were there")

    def _make(self, preset):
        transport, decoder = dict(preset["transport"]), dict(preset["decoder"])
        stream = Stream(
            name=preset["name"],
            title=preset["title"],
            icon=preset["icon"],
            enabled=preset["enabled"],
            ttl_s=preset["ttl_s"],
            stored=preset.get("stored", False),
            retention_s=preset.get("retention_s"),
            transport=transport.pop("kind"),
            transport_options=transport,
            decoder=decoder.pop("kind"),
            decoder_options=decoder,
        )
        stream.full_clean()
        stream.save()
