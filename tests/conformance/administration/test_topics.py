"""Requests about topics that fail: the error codes and messages that people and tools read."""

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.codec.wire import UUID_ZERO
from kafscale.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    TopicToGrow,
)
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.describe_producers import (
    DESCRIBE_PRODUCERS,
    DescribeProducersRequest,
    TopicToDescribe,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest
from kafscale.protocol.messages.metadata import TopicToDescribe as TopicToFind

pytestmark = pytest.mark.timeout(START_S_MAX)

UNKNOWN_ID = bytes(range(16))

REFUSED = {
    "existing": [("orders", 1, 1)],
    "existing, invalid partitions": [("orders", 0, 0)],
    "no partitions": [("new", 0, 1)],
    "negative partitions": [("new", -2, 1)],
    "no replicas": [("new", 1, 0)],
    "negative replicas": [("new", 1, -2)],
    "neither": [("new", 0, 0)],
    "twice": [("new", 1, 1), ("new", 2, 1)],
    "existing twice": [("orders", 1, 1), ("orders", 1, 1)],
    "colliding": [("dotted_name", 1, 1)],
    "too many partitions": [("new", 10_001, 1)],
    "too many together": [("new", 6_000, 1), ("newer", 6_000, 1)],
    "no topic": [],
}
INVALID_NAMES = ["", ".", "..", "a b", "ä", "a/b", "a'b", "a\nb", "a%sb", "x" * 250, "x" * 300]


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("version", [4, 7])
@pytest.mark.parametrize("requested", REFUSED.values(), ids=REFUSED)
def test_create_topics(both, requested, version, validate_only):
    topics = [TopicToCreate(*each) for each in requested]
    both.call(CREATE_TOPICS, version, CreateTopicsRequest(topics, validate_only=validate_only))


def test_create_topics_with_invalid_names(both):
    topics = [TopicToCreate(name, 1, 1) for name in INVALID_NAMES]
    response = both.call(CREATE_TOPICS, 7, CreateTopicsRequest(topics))
    assert all(topic.error_code for topic in response.topics)


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    "requested",
    [
        *([("orders", count)] for count in (3, 2, 1, 0, -1)),
        *([(name, 4)] for name in ("unknown", "a b", "")),
        [("orders", 4), ("orders", 5)],
        [("unknown", 4), ("unknown", 5)],
        [("orders", 3), ("unknown", 3)],
        [],
    ],
)
def test_create_partitions(both, requested, validate_only):
    topics = [TopicToGrow(name, count, None) for name, count in requested]
    both.call(CREATE_PARTITIONS, 3, CreatePartitionsRequest(topics, 10_000, validate_only))


@pytest.mark.parametrize(
    "requested",
    [
        [("unknown", UUID_ZERO)],
        [("a b", UUID_ZERO), ("", UUID_ZERO)],
        [(None, UNKNOWN_ID)],
        [("orders", UNKNOWN_ID)],
        [(None, UUID_ZERO), (None, UUID_ZERO)],
        [("orders", UUID_ZERO)] * 3,
        [("unknown", UUID_ZERO)] * 2,
        [(None, UNKNOWN_ID)] * 2,
        [],
    ],
)
def test_delete_topics(both, requested):
    topics = [TopicToDelete(*each) for each in requested]
    both.call(DELETE_TOPICS, 6, DeleteTopicsRequest(topics, timeout_ms=10_000))


@pytest.mark.parametrize("version", [1, 4, 5])
def test_delete_topics_by_name(both, version):
    both.call(DELETE_TOPICS, version, DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=9_000))


def test_delete_topic_by_name_and_id(both):
    """Each server has its own topic id."""
    found = both.set_up(METADATA, 12, MetadataRequest([TopicToFind(name="orders")]))
    for response, other in zip(found, reversed(found), strict=True):
        topic_ids = [response.topics[0].topic_id, other.topics[0].topic_id]
        topics = [TopicToDelete("orders"), *(TopicToDelete(None, each) for each in topic_ids)]
        request = DeleteTopicsRequest(topics, timeout_ms=10_000)
        kafkas, own = both.set_up(DELETE_TOPICS, 6, request)
        assert sorted(
            (topic.name, topic.error_code, topic.error_message)
            for topic in own.topics
            if topic.name
        ) == sorted(
            (topic.name, topic.error_code, topic.error_message)
            for topic in kafkas.topics
            if topic.name
        )


@pytest.mark.parametrize(
    ("topic", "index", "offset"),
    [
        ("unknown", 0, 0),
        ("a b", 0, 0),
        ("orders", 9, 0),
        *(("orders", 0, at) for at in (5, -1, -2)),
    ],
)
def test_delete_records(both, topic, index, offset):
    topics = [TopicToTrim(topic, [PartitionToTrim(index, offset)])]
    both.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics, 10_000))


def test_describe_producers(both):
    topics = [TopicToDescribe(name, [0, 9]) for name in ("orders", "unknown", "a b", "")]
    both.call(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(topics))
