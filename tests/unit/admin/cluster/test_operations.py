"""Status, drain, flush and rebalance, against control planes in memory."""

import pytest
from msgspec import UNSET

from kafscale.admin.cluster import operations
from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.admin.cluster.operations import DrainResult, FlushedPartition, PartitionName
from kafscale.control_plane.messages import Partition
from kafscale.errors import KafscaleError
from kafscale.net.address import Address
from unit.broker.harness import run
from unit.cli.control_plane_cluster import cluster_of, control_planes


def no_progress(_done, _total):
    """Ignore progress."""


def orders(*numbers):
    return [PartitionName("orders", number) for number in numbers]


def test_status_finds_all_brokers_through_one():
    async def scenario():
        async with cluster_of(draining=(2,)) as cluster:
            cluster.fake_brokers[0].problems = {"object storage": "unavailable"}
            cluster.fake_brokers[1].is_draining = True
            result = await operations.status(cluster, with_partitions=True)
        one, two = result.brokers
        assert (result.cluster_id, result.controller) == ("cluster", 1)
        assert (one.id, one.state, one.is_controller) == (1, "not ready", True)
        assert one.problems == {"object storage": "unavailable"}
        assert (two.id, two.state, two.is_draining) == (2, "draining", True)
        assert (one.partition_count, two.partition_count) == (2, 1)
        assert one.control == f"127.0.0.1:{cluster.state['ports'][1]}"
        owners = {each.partition: each.broker for each in result.partitions}
        assert list(owners.items()) == [(0, 1), (1, 2), (2, 1)]

    run(scenario)


def test_status_shows_unreachable_brokers():
    async def scenario():
        async with cluster_of() as cluster:
            cluster.state["ports"][1] = 1
            async with ClusterControlClient([cluster.state["address"]]) as other:
                result = await operations.status(other, with_partitions=False)
        one, two = result.brokers
        assert (one.state, two.state) == ("unreachable", "ready")
        assert "Connection refused" in one.problems["control plane"]
        assert result.partitions is UNSET

    run(scenario)


def test_client_tries_the_next_address():
    async def scenario():
        async with (
            control_planes() as (_, state),
            ClusterControlClient([Address("127.0.0.1", 1), state["address"]]) as cluster,
        ):
            assert cluster.first_status.broker_id == "2"
        with pytest.raises(KafscaleError, match="start a broker with: kafscale broker"):
            await ClusterControlClient([Address("127.0.0.1", 1)]).__aenter__()

    run(scenario)


def test_drain_is_sent_to_the_broker():
    async def scenario():
        progress = []
        async with cluster_of() as cluster:
            result = await operations.drain(
                cluster,
                "1",
                reason="disk",
                deadline_seconds=7,
                progress=lambda done, total: progress.append((done, total)),
            )
            one, two = cluster.fake_brokers
        assert one.calls == [("drain", None, "disk", 7)]
        assert not two.calls
        assert result == DrainResult(broker=1, drained=orders(0, 2), pending=[])
        assert progress[-1] == (2, 2)

    run(scenario)


def test_drain_reports_pending_partitions():
    async def scenario():
        async with cluster_of(stuck=(2,)) as cluster:
            result = await operations.drain(
                cluster, "1", reason="", deadline_seconds=1, progress=no_progress
            )
        assert (result.drained, result.pending) == (orders(0), orders(2))

    run(scenario)


@pytest.mark.parametrize(
    ("broker", "draining", "message"),
    [
        ("7", (), "there is no broker 7; the brokers are: 1, 2"),
        ("1", (2,), "no other broker that could take over from 1"),
    ],
)
def test_invalid_drain_is_rejected_before_it_begins(broker, draining, message):
    async def scenario():
        async with cluster_of(draining=draining) as cluster:
            with pytest.raises(KafscaleError, match=message):
                await operations.drain(
                    cluster, broker, reason="", deadline_seconds=1, progress=no_progress
                )
            assert not any(broker.calls for broker in cluster.fake_brokers)

    run(scenario)


def test_flush_is_sent_to_the_owners():
    async def scenario():
        async with cluster_of() as cluster:
            everything = await operations.flush(cluster, "", [])
            topic = await operations.flush(cluster, "orders", [])
            some = await operations.flush(cluster, "orders", [2])
            one, two = cluster.fake_brokers
        assert [each.partition for each in topic] == [0, 1, 2]
        assert {each.partition for each in everything} == {0, 1, 2}
        assert some == [FlushedPartition("orders", 2, 1)]
        assert one.calls == [
            ("flush", None),
            ("flush", [Partition("orders", 0), Partition("orders", 2)]),
            ("flush", [Partition("orders", 2)]),
        ]
        assert two.calls == [("flush", None), ("flush", [Partition("orders", 1)])]

    run(scenario)


@pytest.mark.parametrize(
    ("topic", "partitions", "message"),
    [
        ("absent", [], "no broker serves topic 'absent'"),
        ("orders", [0, 9], "no broker serves orders/9"),
    ],
)
def test_flush_of_unserved_partitions_fails(topic, partitions, message):
    async def scenario():
        async with cluster_of() as cluster:
            with pytest.raises(KafscaleError, match=message):
                await operations.flush(cluster, topic, partitions)
            assert not any(broker.calls for broker in cluster.fake_brokers)

    run(scenario)


def test_rebalance_continues_until_nothing_moves():
    async def scenario():
        progress = []
        async with cluster_of(rounds=[[0, 1], [1, 2]]) as cluster:
            moves = await operations.rebalance(
                cluster,
                seconds_max=60,
                poll_seconds=0,
                progress=lambda done, total: progress.append((done, total)),
            )
        assert [move.partition for move in moves] == [0, 1, 2]
        assert all(move.done and (move.source, move.target) == (1, 2) for move in moves)
        assert progress == [(0, 2), (1, 3), (3, 3)]

    run(scenario)


def test_rebalance_without_waiting():
    async def scenario():
        async with cluster_of(rounds=[[0], [0], [0]]) as cluster:
            [move] = await operations.rebalance(cluster, seconds_max=0, progress=no_progress)
            assert not move.done
            assert len(cluster.state["rounds"]) == 2

    run(scenario)


def test_rebalance_needs_a_controller():
    async def scenario():
        async with cluster_of(controller="") as cluster:
            with pytest.raises(KafscaleError, match="no controller at the moment"):
                await operations.rebalance(cluster, seconds_max=0, progress=no_progress)
            result = await operations.status(cluster, with_partitions=False)
            assert result.controller is None

    run(scenario)
