"""Plans for single situations."""

import time

import pytest
from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import DRAINS_PER_MOVE
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, Assignment
from unit.broker.cluster.planned_cluster import NOW_MS, PlannedCluster, imbalance


def wait_until_assigned(*broker_ids, **options):
    cluster = PlannedCluster(*broker_ids, **options)
    cluster.plan_until_done()
    return cluster


# --- unowned units ------------------------------------------------------------------------------


def test_new_partitions_and_shards_are_assigned_evenly():
    cluster = PlannedCluster(1, 2, 3, orders=6, payments=6)
    planned = cluster.plan()
    assert (planned.to_fence, planned.removals) == (set(), [])
    assert len(planned.changes) == 12 + SHARD_COUNT
    cluster.apply(planned)
    assert cluster.counts("orders") == cluster.counts("payments") == {1: 2, 2: 2, 3: 2}
    assert sorted(cluster.counts(shards=True).values()) == [16, 17, 17]


def test_new_assignment_names_the_owners_session():
    cluster = PlannedCluster(7, orders=1)
    cluster.join(7)
    [change] = [change for change in cluster.plan().changes if change.after.topic == "orders"]
    assert change.before is None
    assert change.after == Assignment(
        topic="orders",
        partition=0,
        broker_id=7,
        broker_epoch=2,
        leader_epoch=0,
        fully_rolled=True,
        assigned_ms=NOW_MS,
    )


def test_plan_of_an_assigned_cluster_is_empty():
    cluster = wait_until_assigned(1, 2, 3, orders=7)
    planned = cluster.plan()
    assert (planned.to_fence, planned.changes, planned.removals) == (set(), [], [])


def test_new_partitions_move_no_existing_ones():
    cluster = wait_until_assigned(1, 2, orders=1, payments=1, returns=1)
    before = dict(cluster.assignments)
    cluster.topics["orders"] = 2
    cluster.topics["audit"] = 5
    plans, moves = cluster.plan_until_done()
    assert (len(plans), moves) == (1, 0)
    assert before.items() <= cluster.assignments.items()
    assert imbalance(cluster.counts()) <= 1


def test_new_topic_is_not_concentrated_on_a_new_broker():
    cluster = wait_until_assigned(1, 2, orders=100, moves_max=1)
    cluster.join(3)
    cluster.topics["audit"] = 12
    cluster.apply(cluster.plan())
    assert cluster.counts("audit") == {1: 4, 2: 4, 3: 4}


def test_plan_without_brokers_is_empty():
    assert PlannedCluster(orders=3).plan().changes == []


def test_draining_broker_gets_nothing_unless_it_is_the_only_one():
    cluster = PlannedCluster(1, 2, orders=4)
    cluster.drain(2)
    cluster.apply(cluster.plan())
    assert cluster.counts("orders") == {1: 4, 2: 0}
    alone = PlannedCluster(2, orders=4)
    alone.drain(2)
    alone.apply(alone.plan())
    assert alone.counts("orders") == {2: 4}


def test_each_topic_is_spread_over_racks():
    cluster = PlannedCluster(orders=6, payments=3, returns=4)
    for broker_id, rack in enumerate("aabbcc"):
        cluster.join(broker_id, rack)
    cluster.apply(cluster.plan())
    for topic in ("orders", "payments", "returns"):
        counts = cluster.counts(topic)
        assert imbalance(counts) <= 1
        racks = [counts[number] + counts[number + 1] for number in (0, 2, 4)]
        assert max(racks) - min(racks) <= 1, topic


# --- units of lost owners -----------------------------------------------------------------------


def test_partitions_of_a_lost_broker_wait_for_its_fence_but_shards_do_not():
    cluster = wait_until_assigned(1, 2, 3, orders=9)
    cluster.remove_broker(3)
    before = dict(cluster.assignments)
    planned = cluster.plan()
    assert planned.to_fence == {(3, 1)}
    assert {change.after.topic for change in planned.changes} == {SHARDS_TOPIC}
    cluster.apply(planned)
    planned = cluster.plan()
    assert planned.to_fence == set()
    cluster.apply(planned)
    assert cluster.counts("orders") == {1: 5, 2: 4} or cluster.counts("orders") == {1: 4, 2: 5}
    assert cluster.counts(shards=True) == {1: 25, 2: 25}
    for topic_partition, result in cluster.assignments.items():
        if before[topic_partition].broker_id == 3:
            assert result.leader_epoch == before[topic_partition].leader_epoch + 1
            assert not result.fully_rolled
            assert result.broker_id in {1, 2}
            assert result.lost_owner == (None if topic_partition[0] == SHARDS_TOPIC else (3, 1))
        else:
            assert result == before[topic_partition]


def test_restarted_broker_gets_its_partitions_back():
    cluster = wait_until_assigned(1, 2, 3, orders=9)
    mine = {
        topic_partition
        for topic_partition, result in cluster.assignments.items()
        if result.broker_id == 3
    }
    cluster.remove_broker(3)
    cluster.join(3)
    plans, moves = cluster.plan_until_done()
    assert plans[0].to_fence == {(3, 1)}
    assert moves == 0
    for topic_partition, result in cluster.assignments.items():
        assert (result.broker_id == 3) == (topic_partition in mine)
        assert result.broker_epoch == (2 if topic_partition in mine else 1)
        assert result.leader_epoch == (1 if topic_partition in mine else 0)


def test_brokers_restarted_together_keep_their_partitions():
    cluster = wait_until_assigned(1, 2, 3, orders=6)
    had = {("orders", number): owner for number, owner in enumerate([3, 3, 2, 2, 1, 1])}
    for topic_partition, owner in had.items():
        cluster.write(replace(cluster.assignments[topic_partition], broker_id=owner))
    for broker_id in (1, 2, 3):
        cluster.join(broker_id)
    _, moves = cluster.plan_until_done()
    assert moves == 0
    assert {
        topic_partition: cluster.assignments[topic_partition].broker_id for topic_partition in had
    } == had


def test_restarted_broker_keeps_its_share_reserved_while_it_waits_for_the_fence():
    cluster = wait_until_assigned(1, 2, orders=40)
    cluster.remove_broker(2)
    cluster.join(2)
    planned = cluster.plan()
    assert {change.after.topic for change in planned.changes} == {SHARDS_TOPIC}


def test_owner_with_a_newer_epoch_than_the_cache_is_not_lost():
    """Its registration has not reached the cache yet; the assignment that names it has."""
    cluster = wait_until_assigned(1, 2, orders=4)
    for topic_partition, result in list(cluster.assignments.items()):
        if result.broker_id == 2:
            cluster.assignments[topic_partition] = replace(result, broker_epoch=9)
    planned = cluster.plan()
    assert (planned.to_fence, planned.changes) == (set(), [])


def test_move_ends_when_the_owner_is_lost():
    cluster = wait_until_assigned(1, orders=10)
    cluster.join(2)
    cluster.apply(cluster.plan())
    assert cluster.moving()
    cluster.remove_broker(1)
    cluster.apply(cluster.plan())
    cluster.apply(cluster.plan())
    assert cluster.moving() == {}
    assert cluster.counts() == {2: 10}


def test_assignments_of_missing_partitions_are_removed():
    cluster = wait_until_assigned(1, 2, orders=3, payments=2)
    del cluster.topics["payments"]
    cluster.topics["orders"] = 2
    planned = cluster.plan()
    assert [(gone.topic, gone.partition) for gone in planned.removals] == [
        ("orders", 2),
        ("payments", 0),
        ("payments", 1),
    ]
    cluster.remove_broker(1)
    cluster.remove_broker(2)
    assert cluster.plan().removals == planned.removals


# --- moves --------------------------------------------------------------------------------------


def test_new_broker_is_filled_by_bounded_moves():
    cluster = wait_until_assigned(1, 2, orders=30, moves_max=4)
    cluster.join(3)
    planned = cluster.plan()
    assert len(planned.changes) == 4
    for change in planned.changes:
        assert change.after == replace(change.before, reassigning_to=3)
    cluster.apply(planned)
    assert cluster.plan().changes == [], "the number of moves is bounded"
    _, moves = cluster.plan_until_done()
    assert moves == 10 + 16, "no more than the new broker's share"
    assert cluster.counts("orders") == {1: 10, 2: 10, 3: 10}


def test_move_to_a_lost_broker_is_redirected_or_cancelled():
    cluster = wait_until_assigned(1, orders=30)
    cluster.join(2)
    cluster.apply(cluster.plan())
    moving = cluster.moving()
    assert set(moving.values()) == {2}
    cluster.remove_broker(2)
    cluster.apply(cluster.plan())
    assert cluster.moving() == {}
    cluster.join(2)
    cluster.apply(cluster.plan())
    cluster.drain(2)
    cluster.join(3)
    cluster.apply(cluster.plan())
    assert set(cluster.moving().values()) == {3}


@pytest.mark.parametrize("partitions", [9, 10])
def test_move_that_no_longer_helps_is_cancelled(partitions):
    """Topics were deleted meanwhile, so that the brokers are balanced without it."""
    cluster = wait_until_assigned(1, 2, orders=partitions)
    fullest = max(cluster.brokers, key=cluster.counts().__getitem__)
    mine = next(
        result
        for result in cluster.assignments.values()
        if result.broker_id == fullest and result.topic == "orders"
    )
    cluster.write(replace(mine, reassigning_to=3 - fullest))
    [change] = cluster.plan().changes
    assert change.after.reassigning_to is None
    assert change.after.leader_epoch == mine.leader_epoch


def test_move_to_an_overloaded_broker_is_redirected_before_new_moves_start():
    cluster = wait_until_assigned(1, 2, orders=20, moves_max=1)
    cluster.drain(2)
    cluster.apply(cluster.plan())
    assert set(cluster.moving().values()) == {1}
    cluster.join(3)
    planned = cluster.plan()
    redirected = [change for change in planned.changes if change.before.reassigning_to is not None]
    assert len(redirected) == DRAINS_PER_MOVE
    assert {change.after.reassigning_to for change in planned.changes} == {3}
    cluster.plan_until_done()
    assert cluster.counts() == {1: 10, 2: 0, 3: 10}


def test_drain_does_not_wait_for_other_moves():
    cluster = wait_until_assigned(1, 2, 3, orders=90, moves_max=2)
    cluster.drain(3)
    planned = cluster.plan()
    assert len(planned.changes) == 2 * DRAINS_PER_MOVE
    assert {change.after.broker_id for change in planned.changes} == {3}
    cluster.apply(planned)
    assert cluster.plan().changes == []
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 45, 2: 45, 3: 0}
    assert cluster.counts(shards=True) == {1: 25, 2: 25, 3: 0}


def test_draining_brokers_keep_everything_if_no_other_broker_is_there():
    cluster = wait_until_assigned(1, 2, orders=10)
    cluster.drain(2)
    cluster.drain(1)
    planned = cluster.plan()
    assert (planned.changes, planned.to_fence) == ([], set())
    cluster.join(3)
    cluster.plan_until_done()
    assert cluster.counts("orders") == {1: 0, 2: 0, 3: 10}


def test_move_takes_from_the_most_uneven_topic():
    cluster = wait_until_assigned(1, 2, orders=9, payments=9, moves_max=100)
    cluster.join(3)
    _, moves = cluster.plan_until_done()
    assert moves == 6 + 16
    assert cluster.counts("orders") == cluster.counts("payments") == {1: 3, 2: 3, 3: 3}


@pytest.mark.parametrize("topics", [10, 1000])
def test_planning_a_large_cluster_is_fast(topics):
    cluster = PlannedCluster(*range(20), moves_max=20)
    cluster.topics |= {f"topic-{number}": 10_000 // topics for number in range(topics)}
    for number in range(20):
        cluster.join(number, rack="abc"[number % 3])
    began = time.process_time()
    planned = cluster.plan()
    assert time.process_time() - began < 2
    cluster.apply(planned)
    assert set(cluster.counts().values()) == {500}
    cluster.remove_broker(4)
    cluster.fenced.add((4, 2))
    began = time.process_time()
    planned = cluster.plan()
    assert time.process_time() - began < 2
    assert len(planned.changes) >= 500
