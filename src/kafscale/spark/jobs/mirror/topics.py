"""Which topics are mirrored, and that the target has them: same partitions, same important configs.

The law: a topic of the target never has fewer partitions than its source. The timestamps are the
records' own, and there is room for the header that every record gets.
"""

import re
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from kafscale.errors import InvalidRequestError, UnknownTopicError
from kafscale.spark.jobs.mirror.cluster import ANSWER_S_MAX, Cluster, explained

COPIED: Final = frozenset(
    {
        "cleanup.policy",
        "delete.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "retention.bytes",
        "retention.ms",
    }
)
"""Those configs that say what happens to records; the others say how brokers store them."""

MESSAGE_BYTES_DEFAULT: Final = 1_048_588
MARK_BYTES_MAX: Final = 512


class Topics:
    """The topics of both sides."""

    def __init__(self, source: Cluster, target: Cluster, prefix: str = "") -> None:
        self._source, self._target = source, target
        self._source_admin, self._target_admin = source.admin(), target.admin()
        self._prefix = prefix

    def cluster_ids(self) -> tuple[str, str]:
        """The ids of both clusters, which tell them apart whatever they are called."""
        return (
            _cluster_id(self._source, self._source_admin),
            _cluster_id(self._target, self._target_admin),
        )

    def choose(self, names: Collection[str], pattern: str) -> dict[str, int]:
        """The topics that are mirrored, with their number of partitions."""
        there = _partitions(self._source, self._source_admin)
        missing = sorted(set(names) - there.keys())
        if missing:
            raise UnknownTopicError(
                f"the cluster at {self._source.bootstrap} has no topic {', '.join(missing)}"
            )
        try:
            wanted = re.compile(pattern) if pattern else None
        except re.error as error:
            raise InvalidRequestError(f"{pattern!r} is no regular expression: {error}") from None
        return {
            name: count
            for name, count in sorted(there.items())
            if name in names or (wanted and wanted.fullmatch(name) and not name.startswith("__"))
        }

    def name(self, topic: str) -> str:
        """What a topic is called in the target."""
        return self._prefix + topic

    def prepare(self, chosen: Mapping[str, int]) -> None:
        """Create what the target lacks of the chosen topics."""
        there = _partitions(self._target, self._target_admin)
        missing = {topic: n for topic, n in chosen.items() if self.name(topic) not in there}
        if missing:
            configs = self._configs(missing)
            asked = [
                NewTopic(self.name(topic), count, config=configs[topic])
                for topic, count in missing.items()
            ]
            self._wait(self._target_admin.create_topics(asked))
        grown = [
            NewPartitions(self.name(topic), count)
            for topic, count in chosen.items()
            if there.get(self.name(topic), count) < count
        ]
        if grown:
            self._wait(self._target_admin.create_partitions(grown))

    def _configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        found = {}
        with explained(self._source):
            for resource, future in self._source_admin.describe_configs(resources).items():
                entries = future.result(ANSWER_S_MAX)
                own = {
                    name: entry.value
                    for name, entry in entries.items()
                    if name in COPIED and entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
                }
                largest = entries.get("max.message.bytes")
                size = int(largest.value) if largest is not None else MESSAGE_BYTES_DEFAULT
                found[resource.name] = {**own, "max.message.bytes": str(size + MARK_BYTES_MAX)}
        return found

    def _wait(self, futures: Mapping[str, "Future[Any]"]) -> None:
        with explained(self._target):
            for future in futures.values():
                try:
                    future.result(ANSWER_S_MAX)
                except KafkaException as error:
                    # Another pass, or another client, was faster.
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise


def _cluster_id(cluster: Cluster, admin: AdminClient) -> str:
    with explained(cluster):
        found = admin.list_topics(timeout=ANSWER_S_MAX).cluster_id
    return str(found or cluster.bootstrap)


def _partitions(cluster: Cluster, admin: AdminClient) -> dict[str, int]:
    with explained(cluster):
        topics = admin.list_topics(timeout=ANSWER_S_MAX).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}
