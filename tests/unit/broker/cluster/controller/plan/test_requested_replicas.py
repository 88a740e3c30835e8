"""Plans for partitions that were requested for certain brokers."""

import pytest
from msgspec.structs import replace

from unit.broker.cluster.planned_cluster import PlannedCluster, imbalance


def assigned_cluster(*broker_ids, **options):
    cluster = PlannedCluster(*broker_ids, **options)
    cluster.plan_until_done()
    return cluster


def owner(cluster, partition, topic="orders"):
    return cluster.assignments[topic, partition].broker_id


def place(cluster, *owners):
    """Make these brokers the owners of the partitions of orders."""
    for number, broker_id in enumerate(owners):
        assignment = cluster.assignments["orders", number]
        cluster.write(replace(assignment, broker_id=broker_id))


def test_request_moves_the_partition_and_the_balancer_leaves_it_there():
    cluster = assigned_cluster(1, 2, orders=4)
    place(cluster, 1, 1, 2, 2)
    cluster.request("orders", p0=[2])
    cluster.apply(cluster.plan())
    assert cluster.moving()["orders", 0] == 2
    cluster.plan_until_done()
    assert owner(cluster, 0) == 2
    assert cluster.counts() == {1: 2, 2: 2}, "another one has moved in exchange"
    assert cluster.plan().changes == []


def test_requested_concentration_is_kept_and_new_partitions_avoid_it():
    cluster = assigned_cluster(1, 2, 3, orders=9)
    cluster.request("orders", **{f"p{number}": [1] for number in range(9)})
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 9, 2: 0, 3: 0}
    cluster.topics["payments"] = 8
    _, moves = cluster.plan_until_done()
    assert moves == 0
    assert cluster.counts("payments") == {1: 0, 2: 4, 3: 4}


def test_new_partition_starts_at_the_requested_broker():
    cluster = PlannedCluster(1, 2, 3, orders=3)
    cluster.request("orders", p0=[3, 1], p1=[3, 2], p2=[3, 1])
    cluster.apply(cluster.plan())
    assert cluster.counts("orders") == {1: 0, 2: 0, 3: 3}


def test_next_broker_of_the_list_takes_over_until_the_first_is_back():
    cluster = assigned_cluster(1, 2, 3, orders=1)
    cluster.request("orders", p0=[2, 3])
    cluster.plan_until_done()
    assert owner(cluster, 0) == 2
    cluster.remove_broker(2)
    cluster.plan_until_done()
    assert owner(cluster, 0) == 3
    cluster.join(2)
    cluster.plan_until_done()
    assert owner(cluster, 0) == 2
    cluster.drain(2)
    cluster.plan_until_done()
    assert owner(cluster, 0) == 3


def test_any_broker_takes_over_if_none_of_the_list_is_left():
    cluster = assigned_cluster(1, 2, orders=2)
    cluster.request("orders", p0=[2], p1=[2])
    cluster.plan_until_done()
    cluster.remove_broker(2)
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 2}
    cluster.join(3)
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 1, 3: 1}, "it is balanced like any other"
    cluster.join(2)
    cluster.plan_until_done()
    assert cluster.counts("orders")[2] == 2


def test_moves_to_requested_brokers_are_bounded_and_come_first():
    cluster = assigned_cluster(1, 2, orders=20, moves_max=3)
    mine = [number for number in range(20) if owner(cluster, number) == 1][:5]
    cluster.request("orders", **{f"p{number}": [2] for number in mine})
    cluster.join(3)
    cluster.apply(cluster.plan())
    assert cluster.moving() == {("orders", number): 2 for number in mine[:3]}
    assert cluster.plan().changes == []
    cluster.plan_until_done()
    assert all(owner(cluster, number) == 2 for number in mine)
    assert imbalance(cluster.counts("orders")) <= 1


def test_requested_move_needs_no_moves_of_the_balancer():
    """Settings may allow no rebalancing."""
    cluster = assigned_cluster(1, 2, orders=2, moves_max=0)
    place(cluster, 1, 1)
    cluster.request("orders", p0=[2], p1=[2])
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 0, 2: 2}


@pytest.mark.parametrize("revised", [[1], [3]])
def test_another_request_redirects_or_cancels_the_move(revised):
    cluster = assigned_cluster(1, 2, 3, orders=3)
    place(cluster, 1, 2, 3)
    cluster.request("orders", p0=[2])
    cluster.apply(cluster.plan())
    assert cluster.moving()["orders", 0] == 2
    cluster.request("orders", p0=revised)
    cluster.apply(cluster.plan())
    assert cluster.moving("orders").get(("orders", 0)) == (3 if revised == [3] else None)
    cluster.plan_until_done()
    assert owner(cluster, 0) == revised[0]
