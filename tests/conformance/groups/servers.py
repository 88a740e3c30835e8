"""The two servers to compare: Apache Kafka and Kafscale, with the same topics."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from conformance.groups.codes import Code
from conformance.groups.comparison import Server
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer
from services.wire import Wire

TOPICS: Final = {"one": 1, "three": 3}
"""Topics and their partition counts; no records are written."""

START_S_MAX = 120
"""How long the first test may take, which waits for Kafka."""

SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
KAFKA_SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    # Version 10 of OffsetCommit and OffsetFetch, which clients know already.
    "unstable.api.versions.enable": "true",
    "group.coordinator.append.linger.ms": "0",
}


@contextmanager
def running_servers(directory: Path) -> Iterator[Sequence[Server]]:
    """Both servers, Kafka first."""
    own_settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with (
        KafkaServer(directory / "kafka", SETTINGS | KAFKA_SETTINGS) as kafka,
        # Kafka's node id is 1, too.
        BrokerProcess(directory / "ours", broker_id="1", **own_settings) as broker,
    ):
        yield [_prepare("Apache Kafka", kafka.port), _prepare("ours", broker.port)]


def _prepare(name: str, port: int) -> Server:
    """A server that has the topics, and serves groups already."""
    with Wire(port) as wire:
        for topic, partitions in TOPICS.items():
            wire.create(topic, partitions)
        deadline = time.monotonic() + START_S_MAX
        while (ids := _topic_ids(wire)) is None or not _is_coordinator(wire):
            assert time.monotonic() < deadline, f"{name} is not ready"
            time.sleep(0.05)
    return Server(name, port, ids)


def _topic_ids(wire: Wire) -> dict[str, bytes] | None:
    requested = [TopicToDescribe(name=name) for name in TOPICS]
    topics = wire.call(METADATA, 12, MetadataRequest(topics=requested)).topics
    if any(topic.error_code for topic in topics):
        return None
    return {topic.name: topic.topic_id for topic in topics}


def _is_coordinator(wire: Wire) -> bool:
    """Kafka creates its offsets topic on first use, and is no coordinator before."""
    wire.call(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="any"))
    response = wire.call(HEARTBEAT, 4, HeartbeatRequest("any", 1, "unknown"))
    return response.error_code == Code.UNKNOWN_MEMBER_ID
