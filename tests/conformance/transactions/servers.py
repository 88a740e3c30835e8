"""The two servers to compare, with short intervals of the transaction coordinator.

With `--on-kafka`, both are Apache Kafka: that tests the tests.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from conformance.groups.comparison import Server
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from kafscale.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from kafscale.protocol.messages.init_producer_id import INIT_PRODUCER_ID, InitProducerIdRequest
from services.broker import BrokerProcess
from services.kafka_server import KafkaServer
from services.wire import Wire

START_S_MAX: Final = 150
"""How long the first test may take, which waits for Kafka."""

GROUP, TRANSACTION = 0, 1

SETTINGS: Final = {"group.initial.rebalance.delay.ms": "0"}
KAFKA_SETTINGS: Final = {
    "transaction.state.log.num.partitions": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.coordinator.append.linger.ms": "0",
}


@contextmanager
def running_servers(directory: Path, *, on_kafka: bool) -> Iterator[Sequence[Server]]:
    """Both servers, Kafka first."""
    own_settings = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaServer(directory / "kafka", SETTINGS | KAFKA_SETTINGS))
        ours = stack.enter_context(
            KafkaServer(directory / "ours", SETTINGS | KAFKA_SETTINGS)
            if on_kafka
            # Kafka's node id is 1, too.
            else BrokerProcess(directory / "ours", broker_id="1", **own_settings)
        )
        yield [_prepare("Apache Kafka", kafka.port), _prepare("ours", ours.port)]


def _prepare(name: str, port: int) -> Server:
    """A server that serves groups and transactions already."""
    with Wire(port) as wire:
        deadline = time.monotonic() + START_S_MAX
        while not _is_ready(wire):
            assert time.monotonic() < deadline, f"{name} is not ready"
            time.sleep(0.05)
    return Server(name, port, {})


def _is_ready(wire: Wire) -> bool:
    """Kafka creates its internal topics on first use, and is no coordinator before."""
    wire.call(FIND_COORDINATOR, 3, FindCoordinatorRequest("any", GROUP))
    wire.call(FIND_COORDINATOR, 3, FindCoordinatorRequest("any", TRANSACTION))
    heartbeat = wire.call(HEARTBEAT, 4, HeartbeatRequest("any", 1, "unknown"))
    # This uses the first producer id, which may be 0: the normalization of ids needs others.
    initialized = wire.call(INIT_PRODUCER_ID, 4, InitProducerIdRequest("any", 60_000))
    return (heartbeat.error_code, initialized.error_code) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    )
