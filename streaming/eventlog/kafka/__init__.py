"""The logs on Kafka."""

from streaming.eventlog.kafka.log import AsyncKafkaEventLog, KafkaEventLog, end_connections

__all__ = ["AsyncKafkaEventLog", "KafkaEventLog", "end_connections"]
