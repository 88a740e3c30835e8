"""Partitions of restored metadata: all lose their owners, and no growing number decreases."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.broker.cluster.restore.partitions import (
    CLOCK_EPOCH_MS,
    NO_OWNER,
    leader_epoch,
    producer_id,
    unowned_assignments,
    with_start_offset,
)
from kafscale.metadata.schema.model import Assignment, PartitionState, Topic

NOW_MS = CLOCK_EPOCH_MS + 200_000_000_000
TOPIC = Topic(name="orders", id=bytes(16), partitions=3, configs={}, created_ms=0)
OWNED = Assignment(
    topic="orders",
    partition=1,
    broker_id=4,
    broker_epoch=5,
    leader_epoch=6,
    fully_rolled=True,
    reassigning_to=7,
)
STATE = PartitionState(
    topic="orders",
    topic_id=bytes(16),
    partition=0,
    leader_broker="4",
    leader_epoch=6,
    log_start_offset=10,
    log_end_offset=50,
    high_watermark=50,
    rolled_offset=40,
)


def test_every_partition_gets_an_ended_owner_and_is_not_fully_rolled():
    listed = list(unowned_assignments(TOPIC, {1: OWNED}, set(), NOW_MS))
    assert [each.partition for each in listed] == [0, 1, 2]
    owners = [(each.broker_id, each.broker_epoch) for each in listed]
    assert owners == [NO_OWNER, (4, 5), NO_OWNER]
    assert not any(each.fully_rolled or each.reassigning_to for each in listed)
    assert {each.leader_epoch for each in listed} == {200_000_000}


def test_live_sessions_own_nothing():
    listed = list(unowned_assignments(TOPIC, {1: OWNED}, {(4, 5)}, NOW_MS))
    assert {(each.broker_id, each.broker_epoch) for each in listed} == {NO_OWNER}


@given(
    before=st.integers(0, 10**6), changes=st.integers(0, 10**5), seconds=st.integers(10**6, 10**8)
)
def test_leader_epochs_and_producer_ids_grow_with_every_restore(before, changes, seconds):
    """Of the same snapshot, whatever was allocated in between at a plausible rate."""
    for grown in (leader_epoch, producer_id):
        first = grown(before, NOW_MS)
        assert first > before
        assert grown(before, NOW_MS + seconds * 1000) > first + changes


def test_leader_epochs_and_producer_ids_grow_with_a_wrong_clock():
    assert leader_epoch(7, 0) > 7
    assert producer_id(7, 0) > 7
    assert leader_epoch(2**31 - 1, NOW_MS) == 2**31 - 1, "the largest epoch"


def test_log_start_offset_is_raised_with_all_other_offsets():
    after = with_start_offset(TOPIC, 0, STATE, 60)
    assert (after.log_start_offset, after.rolled_end, after.high_watermark) == (60, 60, 60)
    assert (
        replace(after, log_start_offset=10, log_end_offset=50, high_watermark=50, rolled_offset=40)
        == STATE
    )
    new = with_start_offset(TOPIC, 2, None, 60)
    assert (new.topic_id, new.partition, new.log_start_offset, new.rolled_end) == (
        TOPIC.id,
        2,
        60,
        60,
    )


def test_known_log_start_offset_changes_nothing():
    assert with_start_offset(TOPIC, 0, STATE, 10) is None
    assert with_start_offset(TOPIC, 2, None, 0) is None
