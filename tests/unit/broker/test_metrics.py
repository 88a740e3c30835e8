"""Consumer lag; polling a real cluster is tested end to end."""

import asyncio

from doubles import virtual_time
from kafscale.broker.metrics import STALE_MS, ConsumerLag
from kafscale.config.sections.security import PeerTls
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import AllowedSubjects, ServerTls
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema.model import BrokerInfo
from services.certificates import make_certificates
from unit.broker.harness import run
from unit.broker.in_memory_broker import run_with_broker
from unit.control_plane.scripted_broker import ScriptedBroker


def new_consumer_lag(broker):
    services = broker.services
    return ConsumerLag(
        services.storage.logs,
        services.groups,
        services.cluster,
        broker_id=services.node_id,
        steady=virtual_time.clock_ms,
    )


async def commit(broker, topic, partition, offset):
    await broker.services.groups.commit(
        "readers",
        "",
        None,
        -1,
        {(topic, partition): CommittedOffset(offset=offset, committed_ms=virtual_time.clock_ms())},
        version_knows_missing_groups=True,
    )


def test_lag_uses_local_high_watermarks():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1, 2, 3)
        consumer_lag = new_consumer_lag(broker)
        assert consumer_lag.high_watermark("orders", 0) == 3
        await commit(broker, "orders", 0, 1)
        assert list(consumer_lag.lags()) == [("readers", "orders", 0, 2)]
        assert consumer_lag._leaders() == [], "local partitions need no poll"

    run_with_broker(body)


def test_lag_leaves_out_unknown_partitions():
    async def body(broker):
        await broker.topic("orders")
        consumer_lag = new_consumer_lag(broker)
        await commit(broker, "orders", 0, 0)
        broker.node.ownership.close(("orders", 0))
        assert consumer_lag.high_watermark("orders", 0) is None
        assert list(consumer_lag.lags()) == []

    run_with_broker(body)


def test_polled_high_watermarks_expire():
    async def body(broker):
        consumer_lag = new_consumer_lag(broker)
        consumer_lag._polled["orders", 1] = (7, virtual_time.clock_ms())
        assert consumer_lag.high_watermark("orders", 1) == 7
        await asyncio.sleep(STALE_MS / 1000)
        assert consumer_lag.high_watermark("orders", 1) is None

    run_with_broker(body)


def test_brokers_are_polled_over_tls(tmp_path):
    created = make_certificates(tmp_path)
    settings = PeerTls(
        enabled=True,
        cert_file=str(created.server_certificate),
        key_file=str(created.server_key),
        ca_file=str(created.authority),
    )

    async def scenario():
        other = ControlServer(
            ScriptedBroker(),
            tls=ServerTls(settings),
            allowed_subjects=AllowedSubjects(["localhost"]),
        )
        await other.start("127.0.0.1", 0)
        consumer_lag = ConsumerLag(
            None, None, None, broker_id=1, steady=int, tls=settings.as_client()
        )
        await consumer_lag._poll(
            BrokerInfo(
                id=3, epoch=1, host="", port=0, control_host="localhost", control_port=other.port
            )
        )
        await other.close()
        assert consumer_lag._polled == {("orders", 0): (0, 0)}

    run(scenario)
