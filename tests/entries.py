"""Read what logs hold."""

import json

from streaming.eventlog import RedisEventLog
from streaming.keys import LogNames


def control_entries(client, space="earth"):
    """Return the entries of a space's control log."""
    return [json.loads(entry.fields[b"entry"]) for entry in RedisEventLog(client).read(LogNames(space).control)]
