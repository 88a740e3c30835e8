"""One fetch session: which results are sent, and the read order."""

import pytest

from kafscale.broker.fetch_sessions.session import (
    FetchSession,
    group_by_topic,
    requested_partitions,
)
from kafscale.protocol.messages.fetch import (
    EpochEndOffset,
    FetchedPartition,
    PartitionToFetch,
    TopicToFetch,
    TopicToForget,
)

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))


def topic(name, *indexes, offset=0):
    return TopicToFetch(name, partitions=[PartitionToFetch(i, offset=offset) for i in indexes])


def new_session(*topics, by_topic_id=False):
    partitions = requested_partitions(topics, by_topic_id=by_topic_id)
    return FetchSession(1, partitions, by_topic_id=by_topic_id, now_ms=0)


def order(session):
    return [(partition.name, partition.request.index) for partition in session.partitions.values()]


def unchanged(index=0):
    return FetchedPartition(index, high_watermark=10, log_start_offset=0)


def is_sent(session, result):
    (partition,) = session.partitions.values()
    return bool(session.update([(partition, result)]))


def test_unchanged_result_is_sent_once():
    session = new_session(topic("a", 0))
    assert is_sent(session, unchanged())
    assert not is_sent(session, unchanged())
    assert not is_sent(session, unchanged())


@pytest.mark.parametrize(
    "changed",
    [
        FetchedPartition(0, high_watermark=11, log_start_offset=0),
        FetchedPartition(0, high_watermark=10, log_start_offset=5),
    ],
)
def test_changed_offsets_are_sent_once(changed):
    session = new_session(topic("a", 0))
    is_sent(session, unchanged())
    assert is_sent(session, changed)
    assert not is_sent(session, changed)


@pytest.mark.parametrize(
    "changes",
    [
        {"records": [memoryview(b"batch")]},
        {"error_code": 6},
        {"preferred_read_replica": 2},
        {"diverging_epoch": EpochEndOffset(1, 5)},
    ],
)
def test_records_and_errors_are_always_sent(changes):
    session = new_session(topic("a", 0))
    is_sent(session, unchanged())
    changed = FetchedPartition(0, high_watermark=10, log_start_offset=0, **changes)
    assert is_sent(session, changed)
    assert is_sent(session, changed)


@pytest.mark.parametrize("records", [None, [], [memoryview(b"")]])
def test_empty_records_are_not_a_change(records):
    session = new_session(topic("a", 0))
    is_sent(session, unchanged())
    same = FetchedPartition(0, high_watermark=10, log_start_offset=0, records=records)
    assert not is_sent(session, same)


def test_recovery_from_an_error_is_sent():
    session = new_session(topic("a", 0))
    is_sent(session, unchanged())
    is_sent(session, FetchedPartition(0, error_code=6, high_watermark=10, log_start_offset=0))
    assert is_sent(session, unchanged())
    assert not is_sent(session, unchanged())


def test_partitions_with_records_move_to_the_end():
    session = new_session(topic("a", 0, 1, 2), topic("b", 0))
    results = [unchanged(0), unchanged(1), unchanged(2), unchanged(0)]
    results[0].records = results[2].records = [memoryview(b"batch")]
    session.update(list(zip(session.partitions.values(), results, strict=True)))
    assert order(session) == [("a", 1), ("b", 0), ("a", 0), ("a", 2)]


def test_advance_updates_in_place_and_appends_new_partitions():
    session = new_session(topic("a", 0, 1))
    session.advance([topic("b", 5), topic("a", 0, offset=77)], [], now_ms=9)
    assert order(session) == [("a", 0), ("a", 1), ("b", 5)]
    assert [partition.request.offset for partition in session.partitions.values()] == [77, 0, 0]
    assert (session.epoch, session.used_ms) == (2, 9)


def test_new_fetch_offset_is_not_a_change():
    session = new_session(topic("a", 0))
    is_sent(session, unchanged())
    session.advance([topic("a", 0, offset=10)], [], now_ms=9)
    assert not is_sent(session, unchanged())


def test_advance_forgets_partitions_and_ignores_unknown_ones():
    session = new_session(topic("a", 0, 1), topic("b", 0))
    forget = [TopicToForget("a", partitions=[0, 9]), TopicToForget("c", partitions=[0])]
    session.advance([], forget, now_ms=0)
    assert order(session) == [("a", 1), ("b", 0)]


def test_recreated_topic_is_another_topic_by_id():
    session = new_session(
        TopicToFetch(topic_id=ID, partitions=[PartitionToFetch(0)]), by_topic_id=True
    )
    session.advance(
        [TopicToFetch(topic_id=OTHER_ID, partitions=[PartitionToFetch(0)])],
        [TopicToForget(topic_id=ID, partitions=[0])],
        now_ms=0,
    )
    assert [partition.topic_id for partition in session.partitions.values()] == [OTHER_ID]


def test_epoch_wraps_around_to_1():
    session = new_session(topic("a", 0))
    session.epoch = 2**31 - 1
    session.advance([], [], now_ms=0)
    assert session.epoch == 1


def test_last_of_duplicate_partitions_wins():
    partitions = requested_partitions(
        [topic("a", 0, offset=1), topic("a", 0, offset=2)], by_topic_id=False
    )
    assert [partition.request.offset for partition in partitions.values()] == [2]


def test_response_has_each_topic_once():
    session = new_session(topic("a", 0), topic("b", 0), topic("a", 1))
    results = [unchanged(0), unchanged(0), unchanged(1)]
    topics = group_by_topic(zip(session.partitions.values(), results, strict=True))
    assert [(t.name, [p.index for p in t.partitions]) for t in topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]
