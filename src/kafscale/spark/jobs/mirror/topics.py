"""Selects the topics to mirror, and creates them in the target with the same configs.

Invariants: a topic of the target never has fewer partitions than its source; timestamps are those
of the records; `max.message.bytes` allows for the header that is added to every record.
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
from kafscale.spark.jobs.mirror.cluster import REQUEST_TIMEOUT_S, Cluster, wrap_errors

COPIED_CONFIGS: Final = frozenset(
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
"""The configs that control the lifetime of records; others control how brokers store them."""

MESSAGE_BYTES_DEFAULT: Final = 1_048_588
HEADER_BYTES_MAX: Final = 512


class MirrorTopics:
    """The topics of source and target."""

    def __init__(self, source: Cluster, target: Cluster, prefix: str = "") -> None:
        self._source, self._target = source, target
        self._source_admin, self._target_admin = source.admin(), target.admin()
        self._prefix = prefix

    def cluster_ids(self) -> tuple[str, str]:
        """Return the cluster ids of source and target."""
        return (
            _cluster_id(self._source, self._source_admin),
            _cluster_id(self._target, self._target_admin),
        )

    def choose(self, names: Collection[str], pattern: str) -> dict[str, int]:
        """Return the partition counts of the topics to mirror."""
        existing = _partitions(self._source, self._source_admin)
        missing = sorted(set(names) - existing.keys())
        if missing:
            raise UnknownTopicError(
                f"the cluster at {self._source.bootstrap} has no topic {', '.join(missing)}"
            )
        try:
            expression = re.compile(pattern) if pattern else None
        except re.error as error:
            raise InvalidRequestError(f"invalid regular expression {pattern!r}: {error}") from None
        return {
            name: count
            for name, count in sorted(existing.items())
            if name in names
            or (expression and expression.fullmatch(name) and not name.startswith("__"))
        }

    def target_name(self, topic: str) -> str:
        """Return the name of a topic in the target."""
        return self._prefix + topic

    def prepare(self, chosen: Mapping[str, int]) -> None:
        """Create the topics and partitions that the target lacks."""
        existing = _partitions(self._target, self._target_admin)
        missing = {
            topic: n for topic, n in chosen.items() if self.target_name(topic) not in existing
        }
        if missing:
            configs = self._configs(missing)
            new_topics = [
                NewTopic(self.target_name(topic), count, config=configs[topic])
                for topic, count in missing.items()
            ]
            self._wait(self._target_admin.create_topics(new_topics))
        grown = [
            NewPartitions(self.target_name(topic), count)
            for topic, count in chosen.items()
            if existing.get(self.target_name(topic), count) < count
        ]
        if grown:
            self._wait(self._target_admin.create_partitions(grown))

    def _configs(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        configs = {}
        with wrap_errors(self._source):
            for resource, future in self._source_admin.describe_configs(resources).items():
                entries = future.result(REQUEST_TIMEOUT_S)
                own = {
                    name: entry.value
                    for name, entry in entries.items()
                    if name in COPIED_CONFIGS
                    and entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value
                }
                largest = entries.get("max.message.bytes")
                size = int(largest.value) if largest is not None else MESSAGE_BYTES_DEFAULT
                configs[resource.name] = {**own, "max.message.bytes": str(size + HEADER_BYTES_MAX)}
        return configs

    def _wait(self, futures: Mapping[str, "Future[Any]"]) -> None:
        with wrap_errors(self._target):
            for future in futures.values():
                try:
                    future.result(REQUEST_TIMEOUT_S)
                except KafkaException as error:
                    # Another client has created it in the meantime.
                    if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                        raise


def _cluster_id(cluster: Cluster, admin: AdminClient) -> str:
    with wrap_errors(cluster):
        cluster_id = admin.list_topics(timeout=REQUEST_TIMEOUT_S).cluster_id
    return str(cluster_id or cluster.bootstrap)


def _partitions(cluster: Cluster, admin: AdminClient) -> dict[str, int]:
    with wrap_errors(cluster):
        topics = admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}
