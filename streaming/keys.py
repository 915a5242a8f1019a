"""The names of the logs between Lookout's processes, and of all keys in Redis.

The kind ``log`` is an `EventLog`; the kind ``bounded`` is one whose bytes are bounded. A bounded log has two more keys,
``<log>:marks`` and ``<log>:stamps`` (see `streaming.eventlog.redis_streams`). The keys of Celery's queues do not begin
with ``lookout:``.

=====================================  ========  ====================================================================
key                                    kind      what
=====================================  ========  ====================================================================
``lookout:{space}:ingest:{partition}`` log       blocks of elements, removed once the engine has committed them
``lookout:{space}:definitions``        log       control entries that define streams, removed once the engine has
                                                 committed them; a batch reads them all
``lookout:{space}:control``            log       all other control entries, removed once the engine has committed them
``lookout:{space}:cuts``               bounded   where batches begin and end, removed once the engine has committed them
``lookout:{space}:exchange:{task}``    log       inputs from home servers to regions that one of the engine's tasks
                                                 runs, removed once the interval has ended
``lookout:{space}:results``            bounded   fragments of the last seconds
``lookout:{space}:events``             bounded   the same fragments, with only the tuples that enter or leave the
                                                 answers of saved queries; removed once they are recorded
``lookout:{space}:acks``               bounded   acknowledgements of control entries, with the epoch of the state
                                                 that has them; removed once they are settled
``lookout:{space}:engine``             hash      the engine's report: epoch, batch, heartbeat, tasks, regions, objects
``lookout:{space}:gateway``            hash      the gateway's report on itself: heartbeat, how full Redis is
``lookout:{space}:stale``              hash      count of stale elements since the gateway's start, by stream number
``lookout:{space}:counted``            hash      the newest batch of each region whose stale elements are counted
``lookout:{space}:strain``             hash      how far costs are read, and what the newest batches had too much of
``lookout:{space}:region-changes``     list      the newest changes of the region map, JSON (`streaming.region_reports`)
``lookout:partitioners``               hash      what cuts the regions of a space, by name, if no setting does
``lookout:{space}:sent``               hash      how many frames and bytes all hubs of the space have sent
``lookout:spaces``                     hash      definition of every space, JSON by name
``lookout:streams``                    hash      definition of every stream, JSON by name
``lookout:health``                     hash      health counters of every stream, JSON by name
``lookout:worker``                     hash      the worker's report: heartbeat, for how long tasks have waited in vain
``lookout:beat``                       hash      when beat last sent a task
``lookout:webs``                       set       hubs of web processes; dead ones until they are retired
``lookout:web:{id}``                   text      exists while the hub lives
``lookout:web:{id}:views``             set       numbers of the hub's views
``lookout:web:{id}:figures``           text      connections of the hub and what waits for them, JSON
``lookout:figures``                    list      the figures of the last hour, an entry every five seconds
``lookout:streams:changed``            channel   names of streams and spaces whose definition changed
``lookout:groups``                     channel   messages to groups of connections, JSON
``lookout:connections:{of}``           zset      connections of a user, address or share link; until when each counts
``lookout:imports:asked``              zset      users whose imports wait, with the time when one asked for its turn
``lookout:imports:begun``              zset      users, with the time when their last import began; for a day
``lookout:life``                       text      names the life of Redis: another one after the machine has started anew
=====================================  ========  ====================================================================
"""

from dataclasses import dataclass

SPACES_KEY = "lookout:spaces"
STREAMS_KEY = "lookout:streams"
HEALTH_KEY = "lookout:health"
PARTITIONERS_KEY = "lookout:partitioners"
# The figures of the last hour, for the page about operations.
FIGURES_KEY = "lookout:figures"
# A message on this channel tells the gateway that a definition under STREAMS_KEY or SPACES_KEY changed.
STREAMS_CHANNEL = "lookout:streams:changed"

LIFE_KEY = "lookout:life"
# What Celery's worker and beat report on themselves.
WORKER_KEY, BEAT_KEY = "lookout:worker", "lookout:beat"
WEBS_KEY = "lookout:webs"
# Messages to groups of connections.
GROUPS_CHANNEL = "lookout:groups"
# The connections that a user, an address or a share link has now.
CONNECTIONS_KEY = "lookout:connections:{of}"
# The operations of the control entries that say what a stream is. They do not wait behind those of queries, since the
# elements that follow them do not either.
DEFINING = ("stream", "drop_stream")
IMPORTS_ASKED_KEY, IMPORTS_BEGUN_KEY = "lookout:imports:asked", "lookout:imports:begun"


@dataclass(frozen=True)
class LogNames:
    """Names of one space's logs, and of its other keys in Redis."""

    space: str

    def ingest(self, partition: int) -> str:
        """Return the name of one partition's ingest log."""
        return f"lookout:{self.space}:ingest:{partition}"

    def all_ingest(self, partitions: int) -> list[str]:
        """Return the names of the ingest logs of all partitions."""
        return [self.ingest(partition) for partition in range(partitions)]

    @property
    def control(self) -> str:
        """The control log."""
        return f"lookout:{self.space}:control"

    @property
    def definitions(self) -> str:
        """The log of the control entries that define streams."""
        return f"lookout:{self.space}:definitions"

    def of_entry(self, op: str) -> str:
        """Return the name of the log that the control entries of an operation go to."""
        return self.definitions if op in DEFINING else self.control

    @property
    def cuts(self) -> str:
        """The log of where batches begin and end."""
        return f"lookout:{self.space}:cuts"

    def exchange(self, task: int) -> str:
        """Return the name of the inbox of one of the engine's tasks."""
        return f"lookout:{self.space}:exchange:{task}"

    @property
    def results(self) -> str:
        """The result log."""
        return f"lookout:{self.space}:results"

    @property
    def events(self) -> str:
        """The log of the tuples that enter or leave the answers of saved queries."""
        return f"lookout:{self.space}:events"

    @property
    def acks(self) -> str:
        """The log of acknowledgements."""
        return f"lookout:{self.space}:acks"

    @property
    def engine(self) -> str:
        """The engine's report on itself."""
        return f"lookout:{self.space}:engine"

    @property
    def gateway(self) -> str:
        """The gateway's report on itself."""
        return f"lookout:{self.space}:gateway"

    @property
    def stale(self) -> str:
        """The count of stale elements of each stream."""
        return f"lookout:{self.space}:stale"

    @property
    def counted(self) -> str:
        """The newest batch of each region whose stale elements are counted."""
        return f"lookout:{self.space}:counted"

    @property
    def strain(self) -> str:
        """Up to which event costs were read, and in how many batches running a query was too expensive."""
        return f"lookout:{self.space}:strain"

    @property
    def region_changes(self) -> str:
        """The newest changes of the region map."""
        return f"lookout:{self.space}:region-changes"

    @property
    def sent(self) -> str:
        """How many frames and bytes all hubs have sent."""
        return f"lookout:{self.space}:sent"


def alive_key(web: str) -> str:
    """Return the key that exists while a hub lives."""
    return f"lookout:web:{web}"


def views_key(web: str) -> str:
    """Return the key of the set of a hub's views."""
    return f"lookout:web:{web}:views"


def figures_key(web: str) -> str:
    """Return the key of the figures of a hub."""
    return f"lookout:web:{web}:figures"
