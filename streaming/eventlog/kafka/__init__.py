"""The logs on Kafka."""

from streaming.eventlog.kafka.log import AsyncKafkaEventLog, KafkaEventLog

__all__ = ["AsyncKafkaEventLog", "KafkaEventLog"]
