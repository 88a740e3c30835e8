"""What a subscription reads, by name, by pattern, one by one."""

import pytest

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.plan.offset_map import CatalogTopic, OffsetMap, PartitionOffsets
from kafscale.spark.source.subscription import Subscription

LOG = OffsetMap(
    {
        place: PartitionOffsets(*place, 0, 10)
        for place in [("orders", 0), ("orders", 1), ("orders-eu", 0), ("clicks", 0)]
    },
    {"orders": CatalogTopic("orders", b"i" * 16, 2)},
)


def read(subscription):
    return sorted(subscription.select(LOG))


def test_by_name():
    assert read(Subscription.to_topics(" orders , nothing")) == [("orders", 0), ("orders", 1)]


def test_a_pattern_matches_whole_names():
    assert read(Subscription.to_pattern("order.")) == [("orders", 0), ("orders", 1)]
    assert read(Subscription.to_pattern("order.*")) == [
        ("orders", 0),
        ("orders", 1),
        ("orders-eu", 0),
    ]


def test_one_by_one():
    assigned = Subscription.to_partitions('{"orders": [1], "clicks": [0, 7]}')
    assert read(assigned) == [("clicks", 0), ("orders", 1)]
    assert assigned.topics == {"orders", "clicks"}


@pytest.mark.parametrize("text", ["", " , "])
def test_no_topic_is_refused(text):
    with pytest.raises(InvalidRequestError, match="subscribe names no topic"):
        Subscription.to_topics(text)


@pytest.mark.parametrize("text", ["", "  ", "("])
def test_no_pattern_is_refused(text):
    with pytest.raises(InvalidRequestError, match="subscribePattern"):
        Subscription.to_pattern(text)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"a": 0}', '{"a": ["0"]}', '{"a": [-1]}'])
def test_what_assigns_nothing_is_refused(text):
    with pytest.raises(InvalidRequestError, match="assign"):
        Subscription.to_partitions(text)


def test_a_batch_needs_what_it_names():
    with pytest.raises(UnknownTopicError, match="no such topic: nothing, other"):
        Subscription.to_topics("orders,other,nothing").require(LOG)
    with pytest.raises(UnknownTopicError, match="orders/2 is not there; orders has 2 partitions"):
        Subscription.to_partitions('{"orders": [0, 2]}').require(LOG)
    assert Subscription.to_pattern("nothing.*").require(LOG) == {}


def test_without_a_catalog_a_partition_that_cannot_be_seen_is_taken_for_empty():
    found = Subscription.to_partitions('{"clicks": [0, 1]}').require(LOG)
    assert (found["clicks", 1].start_offset, found["clicks", 1].end_offset) == (0, 0)
