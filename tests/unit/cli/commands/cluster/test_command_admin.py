"""What the commands ask of brokers, and what they make of the answers."""

import pytest

from kafscale.admin.cluster import brokers as cluster_admin
from kafscale.admin.cluster.control_client import Cluster
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address
from unit.broker.harness import run
from unit.cli.control_planes import cluster_of, control_planes


def silent(_done, _total):
    """Nobody looks at the progress."""


def orders(*numbers):
    return [{"topic": "orders", "partition": number} for number in numbers]


def test_one_broker_is_enough_to_find_them_all():
    async def story():
        async with cluster_of(draining=(2,)) as cluster:
            cluster.staff[0].problems = {"object storage": "unavailable"}
            cluster.staff[1].is_draining = True
            told = await cluster_admin.status(cluster, with_partitions=True)
        one, two = told["brokers"]
        assert (told["clusterId"], told["controller"]) == ("cluster", 1)
        assert (one["id"], one["state"], one["isController"]) == (1, "not ready", True)
        assert one["problems"] == {"object storage": "unavailable"}
        assert (two["id"], two["state"], two["draining"]) == (2, "draining", True)
        assert (one["partitionCount"], two["partitionCount"]) == (2, 1)
        assert one["control"] == f"127.0.0.1:{cluster.book['ports'][1]}"
        owners = {each["partition"]: each["broker"] for each in told["partitions"]}
        assert list(owners.items()) == [(0, 1), (1, 2), (2, 1)]

    run(story)


def test_one_that_cannot_be_reached_is_shown_as_that():
    async def story():
        async with cluster_of() as cluster:
            cluster.book["ports"][1] = 1
            async with Cluster([cluster.book["address"]]) as other:
                told = await cluster_admin.status(other, with_partitions=False)
        one, two = told["brokers"]
        assert (one["state"], two["state"]) == ("unreachable", "ready")
        assert "Connection refused" in one["problems"]["control plane"]
        assert "partitions" not in told

    run(story)


def test_the_next_address_is_asked_where_one_does_not_answer():
    async def story():
        async with (
            control_planes() as (_, book),
            Cluster([Address("127.0.0.1", 1), book["address"]]) as cluster,
        ):
            assert cluster.first.broker_id == "2"
        with pytest.raises(KafscaleError, match="start a broker with: kafscale broker"):
            await Cluster([Address("127.0.0.1", 1)]).__aenter__()

    run(story)


def test_a_drain_is_asked_of_the_broker_itself():
    async def story():
        seen = []
        async with cluster_of() as cluster:
            result = await cluster_admin.drain(
                cluster,
                "1",
                reason="disk",
                deadline_seconds=7,
                progress=lambda done, total: seen.append((done, total)),
            )
            one, two = cluster.staff
        assert one.asked == [("drain", None, "disk", 7)]
        assert not two.asked
        assert result == {"broker": 1, "drained": orders(0, 2), "pending": []}
        assert seen[-1] == (2, 2)

    run(story)


def test_a_drain_tells_what_is_left():
    async def story():
        async with cluster_of(stuck=(2,)) as cluster:
            result = await cluster_admin.drain(
                cluster, "1", reason="", deadline_seconds=1, progress=silent
            )
        assert (result["drained"], result["pending"]) == (orders(0), orders(2))

    run(story)


@pytest.mark.parametrize(
    ("broker", "draining", "complaint"),
    [
        ("7", (), "there is no broker 7; the brokers are: 1, 2"),
        ("1", (2,), "no other broker that could take over from 1"),
    ],
)
def test_a_drain_that_cannot_be_is_refused_before_it_begins(broker, draining, complaint):
    async def story():
        async with cluster_of(draining=draining) as cluster:
            with pytest.raises(KafscaleError, match=complaint):
                await cluster_admin.drain(
                    cluster, broker, reason="", deadline_seconds=1, progress=silent
                )
            assert not any(broker.asked for broker in cluster.staff)

    run(story)


def test_a_flush_is_asked_of_those_who_own():
    async def story():
        async with cluster_of() as cluster:
            everything = await cluster_admin.flush(cluster, "", [])
            topic = await cluster_admin.flush(cluster, "orders", [])
            some = await cluster_admin.flush(cluster, "orders", [2])
            one, two = cluster.staff
        assert [each["partition"] for each in topic] == [0, 1, 2]
        assert {each["partition"] for each in everything} == {0, 1, 2}
        assert some == [{"topic": "orders", "partition": 2, "broker": 1}]
        assert one.asked == [
            ("flush", None),
            ("flush", [Partition("orders", 0), Partition("orders", 2)]),
            ("flush", [Partition("orders", 2)]),
        ]
        assert two.asked == [("flush", None), ("flush", [Partition("orders", 1)])]

    run(story)


@pytest.mark.parametrize(
    ("topic", "partitions", "complaint"),
    [
        ("absent", [], "no broker serves topic 'absent'"),
        ("orders", [0, 9], "no broker serves orders/9"),
    ],
)
def test_what_nobody_serves_cannot_be_flushed(topic, partitions, complaint):
    async def story():
        async with cluster_of() as cluster:
            with pytest.raises(KafscaleError, match=complaint):
                await cluster_admin.flush(cluster, topic, partitions)
            assert not any(broker.asked for broker in cluster.staff)

    run(story)


def test_a_rebalance_goes_on_until_nothing_moves():
    async def story():
        seen = []
        async with cluster_of(rounds=[[0, 1], [1, 2]]) as cluster:
            moves = await cluster_admin.rebalance(
                cluster,
                seconds_max=60,
                look_seconds=0,
                progress=lambda done, total: seen.append((done, total)),
            )
        assert [move["partition"] for move in moves] == [0, 1, 2]
        assert all(move["done"] and (move["from"], move["to"]) == (1, 2) for move in moves)
        assert seen == [(0, 2), (1, 3), (3, 3)]

    run(story)


def test_a_rebalance_need_not_be_waited_for():
    async def story():
        async with cluster_of(rounds=[[0], [0], [0]]) as cluster:
            [move] = await cluster_admin.rebalance(cluster, seconds_max=0, progress=silent)
            assert not move["done"]
            assert len(cluster.book["rounds"]) == 2

    run(story)


def test_without_a_controller_nobody_plans():
    async def story():
        async with cluster_of(controller="") as cluster:
            with pytest.raises(KafscaleError, match="no controller at the moment"):
                await cluster_admin.rebalance(cluster, seconds_max=0, progress=silent)
            told = await cluster_admin.status(cluster, with_partitions=False)
            assert told["controller"] is None

    run(story)
