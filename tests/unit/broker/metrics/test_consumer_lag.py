"""What is known of the logs of others; the asking itself is tested on a real cluster."""

import asyncio

from kafscale.broker.metrics.consumer_lag import STALE_MS, Watermarks
from kafscale.config.sections.security import PeerTls
from kafscale.control_plane.allowed_names import Admission
from kafscale.control_plane.server import ControlServer
from kafscale.control_plane.tls import ServerTls
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.testing import virtual_time
from services.certificates import make_certificates
from unit.broker.handlers.serving import serve
from unit.broker.harness import run
from unit.control_plane.stage import ScriptedBroker


def watermarks(broker):
    services = broker.services
    return Watermarks(
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


def test_the_logs_of_this_broker_are_looked_at():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1, 2, 3)
        known = watermarks(broker)
        assert known.get("orders", 0) == 3
        await commit(broker, "orders", 0, 1)
        assert list(known.lags()) == [("readers", "orders", 0, 2)]
        assert known._to_ask() == [], "nobody has to be asked for what is here"

    serve(body)


def test_what_nobody_has_told_is_left_out():
    async def body(broker):
        await broker.topic("orders")
        known = watermarks(broker)
        await commit(broker, "orders", 0, 0)
        broker.node.ownership.close(("orders", 0))
        assert known.get("orders", 0) is None
        assert list(known.lags()) == []

    serve(body)


def test_what_was_told_is_believed_for_a_while():
    async def body(broker):
        known = watermarks(broker)
        known._told["orders", 1] = (7, virtual_time.clock_ms())
        assert known.get("orders", 1) == 7
        await asyncio.sleep(STALE_MS / 1000)
        assert known.get("orders", 1) is None

    serve(body)


def test_others_are_asked_over_tls_where_they_serve_it(tmp_path):
    made = make_certificates(tmp_path)
    settings = PeerTls(
        enabled=True,
        cert_file=str(made.server_certificate),
        key_file=str(made.server_key),
        ca_file=str(made.authority),
    )

    async def story():
        tls = ServerTls(settings, lambda: False)
        other = ControlServer(ScriptedBroker(), tls=tls, admission=Admission(["localhost"]))
        await other.start("127.0.0.1", 0)
        known = Watermarks(None, None, None, broker_id=1, steady=int, tls=settings.as_client())
        await known._ask(
            BrokerInfo(
                id=3, epoch=1, host="", port=0, control_host="localhost", control_port=other.port
            )
        )
        await other.close()
        assert known._told == {("orders", 0): (0, 0)}

    run(story)
