"""Plans, one situation at a time."""

import time

import pytest
from msgspec.structs import replace

from kafscale.broker.cluster.controller.plan.planner import DRAINS_PER_MOVE
from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from kafscale.metadata.schema.model import Assignment
from unit.broker.cluster.drawing_board import NOW_MS, DrawingBoard, unevenness


def settled(*broker_ids, **options):
    board = DrawingBoard(*broker_ids, **options)
    board.settle()
    return board


# --- what nobody has ----------------------------------------------------------------------------


def test_new_partitions_and_shards_are_given_away_evenly():
    board = DrawingBoard(1, 2, 3, orders=6, payments=6)
    planned = board.plan()
    assert (planned.to_fence, planned.removals) == (set(), [])
    assert len(planned.changes) == 12 + SHARD_COUNT
    board.carry_out(planned)
    assert board.counts("orders") == board.counts("payments") == {1: 2, 2: 2, 3: 2}
    assert sorted(board.counts(shards=True).values()) == [16, 17, 17]


def test_a_new_assignment_names_the_life_of_its_owner():
    board = DrawingBoard(7, orders=1)
    board.join(7)
    [change] = [change for change in board.plan().changes if change.after.topic == "orders"]
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


def test_nothing_is_planned_twice():
    board = settled(1, 2, 3, orders=7)
    planned = board.plan()
    assert (planned.to_fence, planned.changes, planned.removals) == (set(), [], [])


def test_new_partitions_move_nothing_that_is_there():
    board = settled(1, 2, orders=1, payments=1, returns=1)
    before = dict(board.assignments)
    board.topics["orders"] = 2
    board.topics["audit"] = 5
    plans, moves = board.settle()
    assert (len(plans), moves) == (1, 0)
    assert before.items() <= board.assignments.items()
    assert unevenness(board.counts()) <= 1


def test_a_new_topic_is_not_heaped_on_the_broker_that_has_just_joined():
    board = settled(1, 2, orders=100, moves_max=1)
    board.join(3)
    board.topics["audit"] = 12
    board.carry_out(board.plan())
    assert board.counts("audit") == {1: 4, 2: 4, 3: 4}


def test_without_brokers_nothing_can_be_given_away():
    assert DrawingBoard(orders=3).plan().changes == []


def test_who_is_about_to_leave_gets_nothing_unless_it_is_the_only_one():
    board = DrawingBoard(1, 2, orders=4)
    board.drain(2)
    board.carry_out(board.plan())
    assert board.counts("orders") == {1: 4, 2: 0}
    alone = DrawingBoard(2, orders=4)
    alone.drain(2)
    alone.carry_out(alone.plan())
    assert alone.counts("orders") == {2: 4}


def test_racks_share_each_topic():
    board = DrawingBoard(orders=6, payments=3, returns=4)
    for broker_id, rack in enumerate("aabbcc"):
        board.join(broker_id, rack)
    board.carry_out(board.plan())
    for topic in ("orders", "payments", "returns"):
        counts = board.counts(topic)
        assert unevenness(counts) <= 1
        racks = [counts[number] + counts[number + 1] for number in (0, 2, 4)]
        assert max(racks) - min(racks) <= 1, topic


# --- what somebody had --------------------------------------------------------------------------


def test_the_partitions_of_a_lost_broker_wait_for_its_fence_and_its_shards_do_not():
    board = settled(1, 2, 3, orders=9)
    board.lose(3)
    before = dict(board.assignments)
    planned = board.plan()
    assert planned.to_fence == {(3, 1)}
    assert {change.after.topic for change in planned.changes} == {SHARDS_TOPIC}
    board.carry_out(planned)
    planned = board.plan()
    assert planned.to_fence == set()
    board.carry_out(planned)
    assert board.counts("orders") == {1: 5, 2: 4} or board.counts("orders") == {1: 4, 2: 5}
    assert board.counts(shards=True) == {1: 25, 2: 25}
    for place, found in board.assignments.items():
        if before[place].broker_id == 3:
            assert found.leader_epoch == before[place].leader_epoch + 1
            assert not found.fully_rolled
            assert found.broker_id in {1, 2}
        else:
            assert found == before[place]


def test_a_broker_that_crashed_and_is_back_gets_its_own_again():
    board = settled(1, 2, 3, orders=9)
    mine = {place for place, found in board.assignments.items() if found.broker_id == 3}
    board.lose(3)
    board.join(3)
    plans, moves = board.settle()
    assert plans[0].to_fence == {(3, 1)}
    assert moves == 0
    for place, found in board.assignments.items():
        assert (found.broker_id == 3) == (place in mine)
        assert found.broker_epoch == (2 if place in mine else 1)
        assert found.leader_epoch == (1 if place in mine else 0)


def test_brokers_that_crashed_together_do_not_swap_what_they_had():
    board = settled(1, 2, 3, orders=6)
    had = {("orders", number): owner for number, owner in enumerate([3, 3, 2, 2, 1, 1])}
    for place, owner in had.items():
        board.write(replace(board.assignments[place], broker_id=owner))
    for broker_id in (1, 2, 3):
        board.join(broker_id)
    _, moves = board.settle()
    assert moves == 0
    assert {place: board.assignments[place].broker_id for place in had} == had


def test_while_its_fence_is_awaited_a_broker_that_is_back_is_not_filled_with_others():
    board = settled(1, 2, orders=40)
    board.lose(2)
    board.join(2)
    planned = board.plan()
    assert {change.after.topic for change in planned.changes} == {SHARDS_TOPIC}


def test_an_owner_that_is_not_seen_yet_is_not_taken_for_lost():
    """Its registration is on the way to us; the assignment that names it was faster."""
    board = settled(1, 2, orders=4)
    for place, found in list(board.assignments.items()):
        if found.broker_id == 2:
            board.assignments[place] = replace(found, broker_epoch=9)
    planned = board.plan()
    assert (planned.to_fence, planned.changes) == (set(), [])


def test_what_was_to_move_when_its_owner_died_moves_no_more():
    board = settled(1, orders=10)
    board.join(2)
    board.carry_out(board.plan())
    assert board.moving()
    board.lose(1)
    board.carry_out(board.plan())
    board.carry_out(board.plan())
    assert board.moving() == {}
    assert board.counts() == {2: 10}


def test_assignments_of_what_does_not_exist_are_removed():
    board = settled(1, 2, orders=3, payments=2)
    del board.topics["payments"]
    board.topics["orders"] = 2
    planned = board.plan()
    assert [(gone.topic, gone.partition) for gone in planned.removals] == [
        ("orders", 2),
        ("payments", 0),
        ("payments", 1),
    ]
    board.lose(1)
    board.lose(2)
    assert board.plan().removals == planned.removals


# --- moves --------------------------------------------------------------------------------------


def test_a_broker_that_joins_is_filled_by_bounded_moves():
    board = settled(1, 2, orders=30, moves_max=4)
    board.join(3)
    planned = board.plan()
    assert len(planned.changes) == 4
    for change in planned.changes:
        assert change.after == replace(change.before, reassigning_to=3)
    board.carry_out(planned)
    assert board.plan().changes == [], "no more than so many at once"
    _, moves = board.settle()
    assert moves == 10 + 16, "not more than what the newcomer is due"
    assert board.counts("orders") == {1: 10, 2: 10, 3: 10}


def test_a_move_to_a_broker_that_is_gone_goes_elsewhere_or_is_called_off():
    board = settled(1, orders=30)
    board.join(2)
    board.carry_out(board.plan())
    moving = board.moving()
    assert set(moving.values()) == {2}
    board.lose(2)
    board.carry_out(board.plan())
    assert board.moving() == {}
    board.join(2)
    board.carry_out(board.plan())
    board.drain(2)
    board.join(3)
    board.carry_out(board.plan())
    assert set(board.moving().values()) == {3}


@pytest.mark.parametrize("partitions", [9, 10])
def test_a_move_that_does_not_help_any_more_is_called_off(partitions):
    """Topics were deleted meanwhile, so that the brokers are even without it."""
    board = settled(1, 2, orders=partitions)
    fullest = max(board.brokers, key=board.counts().__getitem__)
    mine = next(
        found
        for found in board.assignments.values()
        if found.broker_id == fullest and found.topic == "orders"
    )
    board.write(replace(mine, reassigning_to=3 - fullest))
    [change] = board.plan().changes
    assert change.after.reassigning_to is None
    assert change.after.leader_epoch == mine.leader_epoch


def test_a_move_to_a_broker_with_too_many_is_sent_elsewhere_before_another_is_begun():
    board = settled(1, 2, orders=20, moves_max=1)
    board.drain(2)
    board.carry_out(board.plan())
    assert set(board.moving().values()) == {1}
    board.join(3)
    planned = board.plan()
    redirected = [change for change in planned.changes if change.before.reassigning_to is not None]
    assert len(redirected) == DRAINS_PER_MOVE
    assert {change.after.reassigning_to for change in planned.changes} == {3}
    board.settle()
    assert board.counts() == {1: 10, 2: 0, 3: 10}


def test_a_leaving_broker_hands_over_everything_without_waiting_for_other_moves():
    board = settled(1, 2, 3, orders=90, moves_max=2)
    board.drain(3)
    planned = board.plan()
    assert len(planned.changes) == 2 * DRAINS_PER_MOVE
    assert {change.after.broker_id for change in planned.changes} == {3}
    board.carry_out(planned)
    assert board.plan().changes == []
    board.settle()
    assert board.counts("orders") == {1: 45, 2: 45, 3: 0}
    assert board.counts(shards=True) == {1: 25, 2: 25, 3: 0}


def test_a_leaving_broker_keeps_what_it_has_when_nobody_else_is_there():
    board = settled(1, 2, orders=10)
    board.drain(2)
    board.drain(1)
    planned = board.plan()
    assert (planned.changes, planned.to_fence) == ([], set())
    board.join(3)
    board.settle()
    assert board.counts("orders") == {1: 0, 2: 0, 3: 10}


def test_a_move_takes_from_the_topic_that_is_spread_worst():
    board = settled(1, 2, orders=9, payments=9, moves_max=100)
    board.join(3)
    _, moves = board.settle()
    assert moves == 6 + 16
    assert board.counts("orders") == board.counts("payments") == {1: 3, 2: 3, 3: 3}


@pytest.mark.parametrize("topics", [10, 1000])
def test_a_large_cluster_is_planned_in_a_moment(topics):
    board = DrawingBoard(*range(20), moves_max=20)
    board.topics |= {f"topic-{number}": 10_000 // topics for number in range(topics)}
    for number in range(20):
        board.join(number, rack="abc"[number % 3])
    began = time.process_time()
    planned = board.plan()
    assert time.process_time() - began < 2
    board.carry_out(planned)
    assert set(board.counts().values()) == {500}
    board.lose(4)
    board.fenced.add((4, 2))
    began = time.process_time()
    planned = board.plan()
    assert time.process_time() - began < 2
    assert len(planned.changes) >= 500
