"""``manage.py seed_demo``: create the demonstration's streams, its layer and its examples."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from streaming.gateway.presets import DEMO_STREAMS
from webapp.demo.examples import import_port_areas, make_examples
from webapp.management.prepared import PreparedCommand
from webapp.models import Query, Stream


class Command(PreparedCommand):
    """Create the missing streams of the demonstration; the others stay as they are.

    The examples and their layer are created together with the first streams. Later runs do not create them again.
    """

    help = (
        "Make the demonstration's streams that are missing, and the presets of public feeds, switched off. The first "
        "time, make the example queries and their layer."
    )

    def handle(self, *_: object, **__: object) -> None:
        """Create them."""
        known = set(Stream.objects.values_list("name", flat=True))
        missing = [stream for stream in DEMO_STREAMS if stream["name"] not in known]
        first = len(missing) == len(DEMO_STREAMS) and not Query.objects.examples().exists()
        if first:
            import_port_areas()
        with transaction.atomic():
            for stream in missing:
                self._make(stream)
            examples = make_examples() if first else []
        self.stdout.write(f"{len(examples)} examples made")
        self.stdout.write(f"{len(missing)} streams made, {len(known)} were there")

    def _make(self, preset: Mapping[str, Any]) -> None:
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
