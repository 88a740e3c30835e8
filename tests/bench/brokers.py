"""The brokers that benches compare."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from bench.process_usage import cpu_seconds

KAFKA = "Apache Kafka"


class Server(Protocol):
    @property
    def address(self) -> str: ...
    @property
    def process_id(self) -> int: ...
    def start(self) -> object: ...
    def terminate(self) -> object: ...


@dataclass(frozen=True)
class Candidate:
    name: str
    server: Server

    @property
    def address(self) -> str:
        return self.server.address

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.server.process_id)

    def new_topic(self, partitions: int, name: str = "") -> str:
        name = name or f"bench-{uuid4()}"
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.create_topics([NewTopic(name, partitions)], operation_timeout=30)[name].result(30)
        return name

    def delete(self, topic: str) -> None:
        """Delete a topic to free space; a broker without topic deletion keeps it."""
        admin = AdminClient({"bootstrap.servers": self.address})
        with suppress(KafkaException):
            admin.delete_topics([topic], operation_timeout=30)[topic].result(30)
