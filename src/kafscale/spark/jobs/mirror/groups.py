"""A consumer group that moves from one cluster to the other: its offsets, translated.

The law: a group that goes on in the target misses no record, and reads none again that it had read
up to its last commit, unless the mirror is behind it: then it goes on at the end of what is there.
Where a group has been further in the target already, it stays there.
"""

from collections.abc import Collection

import msgspec
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from kafscale.errors import UnknownTopicError
from kafscale.spark.jobs.mirror.cluster import ANSWER_S_MAX, Cluster, explained
from kafscale.spark.jobs.mirror.offset_mapping import Reader
from kafscale.spark.jobs.mirror.topics import Topics


class Translated(msgspec.Struct, frozen=True):
    """How far a group has read a partition, on both sides."""

    topic: str
    partition: int
    source_offset: int
    target_offset: int
    is_moved: bool
    """Whether that was committed; not where the group was further already."""


def translate(
    source: Cluster, target: Cluster, topics: Topics, group: str, chosen: Collection[str]
) -> list[Translated]:
    """Commit in the target what a group has committed in the source, of the chosen topics."""
    source_id, _ = topics.cluster_ids()
    committed = _offsets(source, source.admin(), group)
    places = sorted(place for place in committed if place[0] in chosen)
    if not places:
        raise UnknownTopicError(f"group {group} has committed nothing of the topics mirrored")
    admin = target.admin()
    known = _offsets(target, admin, group)
    reader = Reader(target, source_id)
    try:
        results = []
        for place in places:
            there = (topics.name(place[0]), place[1])
            offset = reader.translated(place, there, committed[place])
            is_moved = offset > known.get(there, -1)
            results.append(Translated(*there, committed[place], offset, is_moved))
    finally:
        reader.close()
    moved = [
        TopicPartition(one.topic, one.partition, one.target_offset)
        for one in results
        if one.is_moved
    ]
    if moved:
        with explained(target):
            asked = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, moved)])
            for place in asked[group].result(ANSWER_S_MAX).topic_partitions:
                assert place.error is None, place.error
    return results


def _offsets(cluster: Cluster, admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    with explained(cluster):
        asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        places = asked[group].result(ANSWER_S_MAX).topic_partitions
    return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}
