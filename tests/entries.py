"""Read what logs hold."""

import json

from streaming.eventlog import RedisEventLog
from streaming.keys import LogNames


def control_entries(client, space="earth"):
    """Return the control entries of a space, those that define streams first."""
    log, names = RedisEventLog(client), LogNames(space)
    entries = [*log.read(names.definitions), *log.read(names.control)]
    return [json.loads(entry.fields[b"entry"]) for entry in entries]
