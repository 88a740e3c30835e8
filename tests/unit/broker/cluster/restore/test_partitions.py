"""Partitions of restored metadata: all are orphans, and nothing that grows goes back."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.broker.cluster.restore.partitions import (
    COUNTED_FROM_MS,
    NOBODY,
    leader_epoch,
    orphans,
    producer_id,
    started,
)
from kafscale.metadata.schema.model import Assignment, PartitionState, Topic

NOW_MS = COUNTED_FROM_MS + 200_000_000_000
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


def test_every_partition_has_an_owner_that_is_over_and_was_not_left_clean():
    found = list(orphans(TOPIC, {1: OWNED}, set(), NOW_MS))
    assert [each.partition for each in found] == [0, 1, 2]
    owners = [(each.broker_id, each.broker_epoch) for each in found]
    assert owners == [NOBODY, (4, 5), NOBODY]
    assert not any(each.fully_rolled or each.reassigning_to for each in found)
    assert {each.leader_epoch for each in found} == {200_000_000}


def test_who_lives_owns_nothing():
    found = list(orphans(TOPIC, {1: OWNED}, {(4, 5)}, NOW_MS))
    assert {(each.broker_id, each.broker_epoch) for each in found} == {NOBODY}


@given(
    before=st.integers(0, 10**6), changes=st.integers(0, 10**5), seconds=st.integers(10**6, 10**8)
)
def test_leader_epochs_and_producer_ids_grow_from_restoration_to_restoration(
    before, changes, seconds
):
    """Of the same snapshot, whatever was given out in between at a rate that can be believed."""
    for grown in (leader_epoch, producer_id):
        first = grown(before, NOW_MS)
        assert first > before
        assert grown(before, NOW_MS + seconds * 1000) > first + changes


def test_they_grow_though_the_clock_stands_at_nothing():
    assert leader_epoch(7, 0) > 7
    assert producer_id(7, 0) > 7
    assert leader_epoch(2**31 - 1, NOW_MS) == 2**31 - 1, "there are no greater ones"


def test_the_start_of_a_log_is_raised_and_no_offset_below_it_is_free():
    after = started(TOPIC, 0, STATE, 60)
    assert (after.log_start_offset, after.rolled_end, after.high_watermark) == (60, 60, 60)
    assert (
        replace(after, log_start_offset=10, log_end_offset=50, high_watermark=50, rolled_offset=40)
        == STATE
    )
    new = started(TOPIC, 2, None, 60)
    assert (new.topic_id, new.partition, new.log_start_offset, new.rolled_end) == (
        TOPIC.id,
        2,
        60,
        60,
    )


def test_a_start_that_is_known_already_is_no_news():
    assert started(TOPIC, 0, STATE, 10) is None
    assert started(TOPIC, 2, None, 0) is None
