"""Tests of subscriptions by name, by pattern and by partition."""

import pytest

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.plan.offset_map import OffsetMap, PartitionOffsets
from kafscale.spark.source.subscription import Subscription
from kafscale.storage.topic_catalog import CatalogTopic

OFFSET_MAP = OffsetMap(
    {
        key: PartitionOffsets(*key, 0, 10)
        for key in [("orders", 0), ("orders", 1), ("orders-eu", 0), ("clicks", 0)]
    },
    {"orders": CatalogTopic("orders", "69" * 16, 2)},
)


def selected(subscription):
    return sorted(subscription.select(OFFSET_MAP))


def test_subscribe_by_name():
    assert selected(Subscription.to_topics(" orders , nothing")) == [("orders", 0), ("orders", 1)]


def test_a_pattern_matches_whole_names():
    assert selected(Subscription.to_pattern("order.")) == [("orders", 0), ("orders", 1)]
    assert selected(Subscription.to_pattern("order.*")) == [
        ("orders", 0),
        ("orders", 1),
        ("orders-eu", 0),
    ]


def test_assign_partitions():
    assigned = Subscription.to_partitions('{"orders": [1], "clicks": [0, 7]}')
    assert selected(assigned) == [("clicks", 0), ("orders", 1)]
    assert assigned.topics == {"orders", "clicks"}


@pytest.mark.parametrize("text", ["", " , "])
def test_subscribe_rejects_empty_lists(text):
    with pytest.raises(InvalidRequestError, match="subscribe names no topic"):
        Subscription.to_topics(text)


@pytest.mark.parametrize("text", ["", "  ", "("])
def test_invalid_patterns_are_rejected(text):
    with pytest.raises(InvalidRequestError, match="subscribePattern"):
        Subscription.to_pattern(text)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"a": 0}', '{"a": ["0"]}', '{"a": [-1]}'])
def test_invalid_assignments_are_rejected(text):
    with pytest.raises(InvalidRequestError, match="assign"):
        Subscription.to_partitions(text)


def test_require_rejects_missing_topics_and_partitions():
    with pytest.raises(UnknownTopicError, match="no such topic: nothing, other"):
        Subscription.to_topics("orders,other,nothing").require(OFFSET_MAP)
    with pytest.raises(UnknownTopicError, match="orders/2 does not exist; orders has 2 partitions"):
        Subscription.to_partitions('{"orders": [0, 2]}').require(OFFSET_MAP)
    assert Subscription.to_pattern("nothing.*").require(OFFSET_MAP) == {}


def test_require_without_a_catalog_assumes_empty_partitions():
    result = Subscription.to_partitions('{"clicks": [0, 1]}').require(OFFSET_MAP)
    assert (result["clicks", 1].start_offset, result["clicks", 1].end_offset) == (0, 0)
