"""The sort order of topics."""

import pytest

from kafscale.console.api.topics import sort_topics
from kafscale.console.schema.topics import Topic, TopicQuery


def topic(name, *, partitions=1, records=None, size=None, produced=None, fetched=None):
    return Topic(
        name=name,
        topic_id="0" * 32,
        internal=False,
        partition_count=partitions,
        leaderless_count=0,
        record_count=records,
        size_bytes=size,
        dirty_ratio=None,
        produce_bytes_per_second=produced,
        fetch_bytes_per_second=fetched,
    )


TOPICS = [
    topic("b", partitions=3, records=5, size=50, produced=0.0, fetched=2.5),
    topic("c", partitions=1, records=9, size=None, produced=1.5, fetched=None),
    topic("a", partitions=3, records=7, size=10, produced=0.5, fetched=1.0),
]


@pytest.mark.parametrize(
    ("sort", "ascending", "descending"),
    [
        ("name", "abc", "cba"),
        ("partitions", "cab", "abc"),
        ("records", "bac", "cab"),
        ("size", "abc", "bac"),
        ("produce", "bac", "cab"),
        ("fetch", "abc", "bac"),
    ],
)
def test_unknown_values_come_last_and_equal_ones_by_name(sort, ascending, descending):
    for order, expected in (("asc", ascending), ("desc", descending)):
        topics = sort_topics(TOPICS, TopicQuery(sort=sort, order=order))
        assert "".join(each.name for each in topics) == expected
