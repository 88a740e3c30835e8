"""The control plane of a broker that is a process of its own."""

import asyncio
import json
import signal
import socket
import time
from contextlib import aclosing

import pytest

from kafscale.control_plane.client import ControlClient
from kafscale.control_plane.errors import ControlError
from kafscale.control_plane.messages import MetricsSample
from kafscale.control_plane.partition import Partition
from services.process import free_port
from services.shell import Shell

STOP_S_MAX = 2
SHARD_COUNT = 50


def control(broker):
    return f"127.0.0.1:{broker.metrics_port}"


@pytest.fixture
def kafscale(broker):
    return Shell(broker.address, control_servers=control(broker))


def ask(address, question):
    """What a question, an async function of a client, is answered."""

    async def asked():
        async with ControlClient(address) as client:
            return await question(client)

    return asyncio.run(asked())


def refused(address, question):
    with pytest.raises(ControlError) as refusal:
        ask(address, question)
    return refusal.value.status, refusal.value.details


def test_a_status_tells_of_partitions_without_scraping(broker, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a", "b", "c"])
    status = ask(control(broker), ControlClient.status)
    owned = {each.partition: each for each in status.partitions if each.topic == topic}
    assert {number: each.log_end_offset for number, each in owned.items()} == {0: 0, 1: 3}
    assert all(each.leader and each.state == "online" for each in owned.values())
    assert (status.ready, status.is_controller, status.draining) == (True, True, False)
    assert (status.store_health, len(status.shards)) == ("healthy", SHARD_COUNT)
    [myself] = status.brokers
    assert (myself.broker_id, myself.port) == (status.broker_id, broker.port)
    assert myself.control_port == broker.metrics_port
    assert broker.http("/metrics")[0] == 200


def test_a_flush_is_answered_when_segments_hold_everything(broker, kafscale, topic):
    kafscale("topic", "create", topic, "-p", "2")
    kafscale.produce(topic, "--partition", "1", lines=["a", "b", "c"])
    assert not broker.objects(f"**/{topic}/1/*.kfs")
    flushed = ask(control(broker), lambda client: client.flush([Partition(topic, 1)]))
    assert flushed == [Partition(topic, 1)]
    assert [path.name for path in broker.objects(f"**/{topic}/1/*.kfs")] == [
        "segment-00000000000000000000.kfs"
    ]
    kafscale.produce(topic, "--partition", "0", lines=["d"])
    everything = ask(control(broker), ControlClient.flush)
    assert {Partition(topic, 0), Partition(topic, 1)} <= set(everything)
    assert broker.objects(f"**/{topic}/0/*.kfs")


def test_sealing_tells_where_the_next_segment_begins(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    for count in (3, 5):
        kafscale.produce(topic, lines=map(str, range(count)))
        sealed = ask(control(broker), lambda client: client.seal_tail(Partition(topic, 0)))
    assert (sealed.log_start_offset, sealed.rolled_end_offset) == (0, 8)
    names = [path.stem for path in broker.objects(f"**/{topic}/0/*.kfs")]
    assert names == ["segment-00000000000000000000", "segment-00000000000000000003"]
    assert len(kafscale("consume", topic, "-e").split()) == 8


def test_refusals_say_why(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    nowhere, beyond = Partition("absent", 0), Partition(topic, 1)
    for question in (
        lambda client: client.seal_tail(nowhere),
        lambda client: client.flush([nowhere]),
        lambda client: client.drain([nowhere]),
        lambda client: client.swap_segments(nowhere, "job"),
    ):
        assert refused(control(broker), question) == ("NOT_FOUND", "there is no topic 'absent'")
    status, details = refused(control(broker), lambda client: client.seal_tail(beyond))
    assert (status, details) == ("NOT_FOUND", f"there is no partition {topic}/1, only 0 to 0")
    assert refused(control(broker), lambda client: client.flush([]))[0] == "INVALID_ARGUMENT"
    status, _ = refused(
        control(broker), lambda client: client.swap_segments(Partition(topic, 0), "../up")
    )
    assert status == "INVALID_ARGUMENT"


def test_what_nobody_else_can_take_stays_here(broker, kafscale, topic):
    kafscale("topic", "create", topic)
    answer = ask(
        control(broker), lambda client: client.drain([Partition(topic, 0)], deadline_seconds=1)
    )
    assert list(map(Partition.of, answer.pending)) == [Partition(topic, 0)]
    assert not answer.drained
    kafscale.produce(topic, lines=["still here"])


def test_assignments_are_watched_as_topics_come_and_go(broker, kafscale, topic):
    async def watched(client):
        told = []
        async with aclosing(client.watch_assignments()) as events:
            shards = [await anext(events) for _ in range(SHARD_COUNT)]
            assert all(event.is_initial for event in shards)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, kafscale, "topic", "create", topic)
            await loop.run_in_executor(None, kafscale, "topic", "delete", topic, "--yes")
            while len(told) < 2:
                event = await anext(events)
                if event.partition.topic == topic:
                    told.append((event.status, event.broker_id))
        return told

    broker_id = ask(control(broker), ControlClient.status).broker_id
    assert ask(control(broker), watched) == [("assigned", broker_id), ("released", broker_id)]


def test_samples_of_others_are_taken_in(broker):
    async def sent(client):
        async def samples():
            yield MetricsSample(broker_id="17", timestamp_ms=5, gauges={"lag": 3})

        await client.send_metrics(samples())
        return await client.status(with_partitions=False, with_samples=True)

    samples = {each.broker_id: each for each in ask(control(broker), sent).samples}
    assert dict(samples["17"].gauges) == {"lag": 3.0}


def test_the_command_shows_and_directs_a_cluster(broker, kafscale, topic):
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
    assert "segments hold everything of 2 partitions" in kafscale("cluster", "flush", "-t", topic)
    assert "no broker serves topic" in kafscale("cluster", "flush", "-t", "absent", code=1)
    assert kafscale("cluster", "rebalance") == "everything is where it belongs\n"
    assert "no other broker" in kafscale("cluster", "drain", str(myself["id"]), code=1)
    assert "there is no broker 4711" in kafscale("cluster", "drain", "4711", code=1)


def test_the_control_plane_may_have_a_port_of_its_own(start_broker):
    port = free_port()
    broker = start_broker(control_addr=f"127.0.0.1:{port}")
    own = ask(f"127.0.0.1:{port}", ControlClient.status)
    shared = ask(control(broker), ControlClient.status)
    assert own.cluster_id == shared.cluster_id != ""


def test_a_broker_stops_in_time_though_somebody_watches(start_broker):
    broker = start_broker()

    async def watched(client):
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

    # Somebody who says nothing at all must not hold it up either.
    with socket.create_connection(("127.0.0.1", broker.metrics_port)) as silent:
        silent.sendall(b"PRI * HTTP/2.0\r\n\r\n")
        code, seconds = ask(control(broker), watched)
    assert code == 0
    assert seconds < STOP_S_MAX
    assert '"level": "error"' not in broker.logged()
    assert "Traceback" not in broker.logged()
