"""Open the logs where the setting says that they are: in Redis, or in Kafka."""

from typing import TYPE_CHECKING, Any

from streaming.errors import LookoutError
from streaming.eventlog.protocol import EventLog
from streaming.eventlog.redis_streams import AsyncRedisEventLog, PatientRedisEventLog, RedisEventLog

if TYPE_CHECKING:
    from streaming.eventlog.kafka import KafkaEventLog


_SCHEME = "kafka://"
# How long a call waits for Kafka, in seconds: one that must not wait for long, and a patient one: a broker that starts
# takes longer than Redis does.
_IMPATIENT_S, _PATIENT_S = 5.0, 60.0


def open_log(client: Any, url: str = "", patient: bool = False) -> EventLog:
    """Return the logs.

    Parameters
    ----------
    client : redis.Redis
        With ``decode_responses=False``. The logs are there if `url` is empty.
    url : str, optional
        Where Kafka is: see `check_url`.
    patient : bool, optional
        Whether appends wait while Redis is full, and calls longer for a Kafka that does not answer.
    """
    if url:
        return _on_kafka(url, _PATIENT_S if patient else _IMPATIENT_S)
    return PatientRedisEventLog(client) if patient else RedisEventLog(client)


def open_async_log(client: Any, url: str = "") -> Any:
    """Return the logs for asyncio: in Redis, by a client for asyncio, or in Kafka if there is a `url`."""
    if not url:
        return AsyncRedisEventLog(client)
    from streaming.eventlog.kafka import AsyncKafkaEventLog

    return AsyncKafkaEventLog(_on_kafka(url, _IMPATIENT_S))


def check_url(url: str) -> str:
    """Return the URL of Kafka if it is one, or if it is empty.

    Raises
    ------
    LookoutError
        If it is something else.

    Examples
    --------
    >>> check_url("kafka://one:9092,other:9092/lookout")
    'kafka://one:9092,other:9092/lookout'
    """
    servers = url.removeprefix(_SCHEME).partition("/")[0]
    if url and (not url.startswith(_SCHEME) or not all(map(_is_address, servers.split(",")))):
        raise LookoutError(f"LOOKOUT_LOG_URL must be kafka://host:port, with commas between several; got {url!r}")
    return url


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdigit()


def _on_kafka(url: str, patience_s: float) -> "KafkaEventLog":
    try:
        from streaming.eventlog.kafka import KafkaEventLog
    except ImportError as error:
        raise LookoutError(
            f"LOOKOUT_LOG_URL needs the package confluent-kafka: pip install lookout[kafka]; {error}"
        ) from None
    servers, _, prefix = check_url(url).removeprefix(_SCHEME).partition("/")
    return KafkaEventLog(servers, prefix, patience_s)
