"""The control plane of a broker process."""

import asyncio
import json
import signal
import socket
import time
from contextlib import aclosing

import pytest

from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import MetricsSample, Partition
from services.shell import Shell

STOP_S_MAX = 2
SHARD_COUNT = 50


def control(broker):
    return broker.control_address


@pytest.fixture
def kafscale(broker):
    return Shell(broker.address, control_servers=control(broker))


def call(address, operation):
    """Call an async function with a client of the control plane; return its result."""

    async def run():
        async with ControlClient(address) as client:
            return await operation(client)

    return asyncio.run(run())


def error_of(address, operation):
    with pytest.raises(ControlError) as error:
        call(address, operation)
    return error.value.status, error.value.details


def test_status_reports_partitions(broker, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a", "b", "c"])
    status = call(control(broker), ControlClient.status)
    owned = {each.partition: each for each in status.partitions if each.topic == topic}
    assert {number: each.log_end_offset for number, each in owned.items()} == {0: 0, 1: 3}
    assert all(each.leader and each.state == "online" for each in owned.values())
    assert (status.ready, status.is_controller, status.draining) == (True, True, False)
    assert (status.store_health, len(status.shards)) == ("healthy", SHARD_COUNT)
    [myself] = status.brokers
    assert (myself.broker_id, myself.port) == (status.broker_id, broker.port)
    assert myself.control_port == broker.control_port
    assert broker.http("/metrics")[0] == 200


def test_flush_returns_when_segments_hold_all_records(broker, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a", "b", "c"])
    assert not broker.objects(f"**/{topic}/1/*.kfs")
    flushed = call(control(broker), lambda client: client.flush([Partition(topic, 1)]))
    assert flushed == [Partition(topic, 1)]
    assert [path.name for path in broker.objects(f"**/{topic}/1/*.kfs")] == [
        "segment-00000000000000000000.kfs"
    ]
    kafscale.produce(topic, "--partition", "0", lines=["d"])
    everything = call(control(broker), ControlClient.flush)
    assert {Partition(topic, 0), Partition(topic, 1)} <= set(everything)
    assert broker.objects(f"**/{topic}/0/*.kfs")


def test_seal_returns_the_start_of_the_next_segment(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    for count in (3, 5):
        kafscale.produce(topic, lines=map(str, range(count)))
        sealed = call(control(broker), lambda client: client.seal_tail(Partition(topic, 0)))
    assert (sealed.log_start_offset, sealed.rolled_end_offset) == (0, 8)
    names = [path.stem for path in broker.objects(f"**/{topic}/0/*.kfs")]
    assert names == ["segment-00000000000000000000", "segment-00000000000000000003"]
    assert len(kafscale("consume", topic, "-e").split()) == 8


def test_errors_give_the_reason(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    missing_topic, missing_partition = Partition("absent", 0), Partition(topic, 1)
    for operation in (
        lambda client: client.seal_tail(missing_topic),
        lambda client: client.flush([missing_topic]),
        lambda client: client.drain([missing_topic]),
        lambda client: client.swap_segments(missing_topic, "job"),
    ):
        assert error_of(control(broker), operation) == ("NOT_FOUND", "there is no topic 'absent'")
    status, details = error_of(control(broker), lambda client: client.seal_tail(missing_partition))
    assert (status, details) == ("NOT_FOUND", f"there is no partition {topic}/1, only 0 to 0")
    assert error_of(control(broker), lambda client: client.flush([]))[0] == "INVALID_ARGUMENT"
    status, _ = error_of(
        control(broker), lambda client: client.swap_segments(Partition(topic, 0), "../up")
    )
    assert status == "INVALID_ARGUMENT"


def test_drain_keeps_partitions_that_no_other_broker_can_own(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    response = call(
        control(broker), lambda client: client.drain([Partition(topic, 0)], deadline_seconds=1)
    )
    assert list(map(Partition.of, response.pending)) == [Partition(topic, 0)]
    assert not response.drained
    kafscale.produce(topic, lines=["still here"])


def test_watch_reports_assignments_of_created_and_deleted_topics(broker, kafscale, topic):
    async def watch(client):
        received = []
        async with aclosing(client.watch_assignments()) as events:
            shards = [await anext(events) for _ in range(SHARD_COUNT)]
            assert all(event.is_initial for event in shards)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, kafscale, "topic", "create", topic)
            await loop.run_in_executor(None, kafscale, "topic", "delete", topic, "--yes")
            while len(received) < 2:
                event = await anext(events)
                if event.partition.topic == topic:
                    received.append((event.status, event.broker_id))
        return received

    broker_id = call(control(broker), ControlClient.status).broker_id
    assert call(control(broker), watch) == [("assigned", broker_id), ("released", broker_id)]


def test_metrics_samples_of_other_brokers_are_accepted(broker):
    async def send_samples(client):
        async def samples():
            yield MetricsSample(broker_id="17", timestamp_ms=5, gauges={"lag": 3})

        await client.send_metrics(samples())
        return await client.status(with_partitions=False, with_samples=True)

    samples = {each.broker_id: each for each in call(control(broker), send_samples).samples}
    assert dict(samples["17"].gauges) == {"lag": 3.0}


def test_cluster_command_shows_and_controls_a_cluster(broker, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a"])
    status = json.loads(kafscale("cluster", "status", "--partitions", "-o", "json"))
    [myself] = status["brokers"]
    assert (myself["id"], myself["state"]) == (status["controller"], "ready")
    assert myself["address"] == broker.address
    assert {each["topic"] for each in status["partitions"]} >= {topic}
    assert "is the controller" in kafscale("cluster", "status")

    flushed = json.loads(
        kafscale("cluster", "flush", "--topic", topic, "--partition", "1", "-o", "json")
    )
    assert flushed == [{"topic": topic, "partition": 1, "broker": myself["id"]}]
    assert "2 partitions fully rolled into segments" in kafscale("cluster", "flush", "-t", topic)
    assert "no broker serves topic" in kafscale("cluster", "flush", "-t", "absent", code=1)
    assert kafscale("cluster", "rebalance") == "the cluster is balanced; no partition moves\n"
    assert "no other broker" in kafscale("cluster", "drain", str(myself["id"]), code=1)
    assert "there is no broker 4711" in kafscale("cluster", "drain", "4711", code=1)


def test_request_for_another_broker_is_rejected(broker):
    async def flush():
        async with ControlClient(broker.control_address, broker_id="4711") as client:
            await client.flush()

    with pytest.raises(ControlError, match=r"not 4711.*broker\.controlHost"):
        asyncio.run(flush())


def test_changes_without_a_certificate_are_audited(broker):
    logged = len(broker.logged())
    call(control(broker), ControlClient.flush)
    [line] = [line for line in broker.logged(logged).splitlines() if "TriggerFlush" in line]
    entry = json.loads(line)
    assert (entry["event"], entry["principal"]) == ("changed", "ANONYMOUS")
    assert entry["client"].startswith("ipv4:127.0.0.1:")


def test_broker_stops_in_time_despite_open_watches(start_broker):
    broker = start_broker()

    async def watch(client):
        async with aclosing(client.watch_assignments()) as events:
            await anext(events)
            process = broker._take()
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            with pytest.raises(ControlError):
                async for _ in events:
                    pass
            code = await asyncio.get_running_loop().run_in_executor(None, process.wait)
            return code, time.monotonic() - began

    # An idle connection must not delay the stop either.
    with socket.create_connection(("127.0.0.1", broker.control_port)) as silent:
        silent.sendall(b"PRI * HTTP/2.0\r\n\r\n")
        code, seconds = call(control(broker), watch)
    assert code == 0
    assert seconds < STOP_S_MAX
    assert '"level": "error"' not in broker.logged()
    assert "Traceback" not in broker.logged()
