"""How long to wait for a Kafka that does not answer, and what is raised after that."""

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import redis
from confluent_kafka import KafkaError, KafkaException

PAUSE_S = 0.05
# These stay, however long somebody waits. All others may be those of a broker that is away, or that has just come back.
_REFUSALS = {
    KafkaError._AUTHENTICATION,
    KafkaError._INVALID_ARG,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.INVALID_CONFIG,
    KafkaError.INVALID_REQUEST,
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.OFFSET_OUT_OF_RANGE,
    KafkaError.POLICY_VIOLATION,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_VERSION,
}
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class KafkaUnavailable(redis.ConnectionError):
    """Kafka does not answer, or refuses something.

    It is an error of Redis for those that need both: whoever waits for a Redis that is away also waits for Kafka.
    """


def asking(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a method raise `KafkaUnavailable` where the client library raises its own error."""

    @wraps(method)
    def asked(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            return method(*arguments, **options)
        except KafkaException as error:
            raise KafkaUnavailable(f"Kafka does not answer: {error.args[0]}") from error

    return asked


def patiently(patience_s: float, attempt: Callable[[float], Result]) -> Result:
    """Return what an attempt returns; if it fails, try again.

    Parameters
    ----------
    patience_s : float
        For how long, in seconds.
    attempt : function of float
        It is told how many seconds are left, and must be one that may be made twice.

    Raises
    ------
    KafkaException
        That of the last attempt, or the first one that waiting does not help against.
    """
    deadline_s = time.monotonic() + patience_s
    while True:
        try:
            return attempt(max(PAUSE_S, deadline_s - time.monotonic()))
        except KafkaException as error:
            if error.args[0].code() in _REFUSALS or time.monotonic() > deadline_s:
                raise
        time.sleep(PAUSE_S)
