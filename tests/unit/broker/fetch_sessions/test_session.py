"""What one session tells its client, and in which order it reads."""

import pytest

from kafscale.broker.fetch_sessions.session import Session, asked, by_topic
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


def session_of(*topics, by_topic_id=False):
    partitions = asked(topics, by_topic_id=by_topic_id)
    return Session(1, partitions, by_topic_id=by_topic_id, now_ms=0)


def order(session):
    return [(wanted.name, wanted.request.index) for wanted in session.partitions.values()]


def quiet(index=0):
    return FetchedPartition(index, high_watermark=10, log_start_offset=0)


def told(session, result):
    (wanted,) = session.partitions.values()
    return bool(session.tell([(wanted, result)]))


def test_what_was_told_is_not_told_again():
    session = session_of(topic("a", 0))
    assert told(session, quiet())
    assert not told(session, quiet())
    assert not told(session, quiet())


@pytest.mark.parametrize(
    "news",
    [
        FetchedPartition(0, high_watermark=11, log_start_offset=0),
        FetchedPartition(0, high_watermark=10, log_start_offset=5),
    ],
)
def test_new_offsets_are_told_once(news):
    session = session_of(topic("a", 0))
    told(session, quiet())
    assert told(session, news)
    assert not told(session, news)


@pytest.mark.parametrize(
    "changes",
    [
        {"records": [memoryview(b"batch")]},
        {"error_code": 6},
        {"preferred_read_replica": 2},
        {"diverging_epoch": EpochEndOffset(1, 5)},
    ],
)
def test_records_and_what_clients_must_act_on_are_told_every_time(changes):
    session = session_of(topic("a", 0))
    told(session, quiet())
    news = FetchedPartition(0, high_watermark=10, log_start_offset=0, **changes)
    assert told(session, news)
    assert told(session, news)


@pytest.mark.parametrize("records", [None, [], [memoryview(b"")]])
def test_no_records_are_no_news_in_any_form(records):
    session = session_of(topic("a", 0))
    told(session, quiet())
    same = FetchedPartition(0, high_watermark=10, log_start_offset=0, records=records)
    assert not told(session, same)


def test_the_end_of_an_error_is_told():
    session = session_of(topic("a", 0))
    told(session, quiet())
    told(session, FetchedPartition(0, error_code=6, high_watermark=10, log_start_offset=0))
    assert told(session, quiet())
    assert not told(session, quiet())


def test_partitions_that_had_records_go_to_the_end():
    session = session_of(topic("a", 0, 1, 2), topic("b", 0))
    results = [quiet(0), quiet(1), quiet(2), quiet(0)]
    results[0].records = results[2].records = [memoryview(b"batch")]
    session.tell(list(zip(session.partitions.values(), results, strict=True)))
    assert order(session) == [("a", 1), ("b", 0), ("a", 0), ("a", 2)]


def test_changes_are_taken_in_where_they_are_and_additions_at_the_end():
    session = session_of(topic("a", 0, 1))
    session.advance([topic("b", 5), topic("a", 0, offset=77)], [], now_ms=9)
    assert order(session) == [("a", 0), ("a", 1), ("b", 5)]
    assert [wanted.request.offset for wanted in session.partitions.values()] == [77, 0, 0]
    assert (session.epoch, session.used_ms) == (2, 9)


def test_a_new_offset_alone_is_no_reason_to_tell_again():
    session = session_of(topic("a", 0))
    told(session, quiet())
    session.advance([topic("a", 0, offset=10)], [], now_ms=9)
    assert not told(session, quiet())


def test_partitions_are_forgotten_and_unknown_ones_ignored():
    session = session_of(topic("a", 0, 1), topic("b", 0))
    forget = [TopicToForget("a", partitions=[0, 9]), TopicToForget("c", partitions=[0])]
    session.advance([], forget, now_ms=0)
    assert order(session) == [("a", 1), ("b", 0)]


def test_a_topic_that_was_deleted_and_made_again_is_another_by_its_id():
    session = session_of(
        TopicToFetch(topic_id=ID, partitions=[PartitionToFetch(0)]), by_topic_id=True
    )
    session.advance(
        [TopicToFetch(topic_id=OTHER_ID, partitions=[PartitionToFetch(0)])],
        [TopicToForget(topic_id=ID, partitions=[0])],
        now_ms=0,
    )
    assert [wanted.topic_id for wanted in session.partitions.values()] == [OTHER_ID]


def test_epochs_begin_again_at_1():
    session = session_of(topic("a", 0))
    session.epoch = 2**31 - 1
    session.advance([], [], now_ms=0)
    assert session.epoch == 1


def test_of_a_partition_that_is_named_twice_the_latter_counts():
    partitions = asked([topic("a", 0, offset=1), topic("a", 0, offset=2)], by_topic_id=False)
    assert [wanted.request.offset for wanted in partitions.values()] == [2]


def test_an_answer_names_each_topic_once():
    session = session_of(topic("a", 0), topic("b", 0), topic("a", 1))
    results = [quiet(0), quiet(0), quiet(1)]
    topics = by_topic(zip(session.partitions.values(), results, strict=True))
    assert [(t.name, [p.index for p in t.partitions]) for t in topics] == [
        ("a", [0, 1]),
        ("b", [0]),
    ]
