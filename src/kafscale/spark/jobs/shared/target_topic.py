"""The topic that a job produces to: an existing one, or a new one like the source topic.

A new topic has the partition count and the configs of its source, but no retention: old records
would otherwise be deleted as they arrive. Timestamps are those of the records. Configs that the
user gives take precedence.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from kafscale.client.client import Client
from kafscale.client.security import PLAINTEXT, Security
from kafscale.client.topics import create, find, wait_for_leaders
from kafscale.errors import InvalidRequestError
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.spark.plan.offset_map import OffsetMap
from kafscale.spark.read.location import Location

FIXED_CONFIGS: Final = {
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""Configs of a new topic, whatever the source has."""


@dataclass(frozen=True, kw_only=True)
class CopySettings:
    """The topic to copy, and the topic to copy it to."""

    location: Location
    topic: str
    target: str
    bootstrap: str
    """Bootstrap servers of the cluster of the target topic."""
    security: Security = PLAINTEXT
    """How to connect to them; its files must exist where tasks run, too."""
    partition_count: int | None = None
    """Of a new topic; the default is that of the source, if the catalog still has it."""
    configs: Mapping[str, str] = field(default_factory=dict)


class TargetTopic(msgspec.Struct, frozen=True):
    """The topic that a job needs."""

    name: str
    partition_count: int
    configs: Mapping[str, str] = {}

    async def find_or_create(self, client: Client) -> tuple[TopicMetadata, bool]:
        """Return the topic, once it has leaders, and whether it was created."""
        created = None
        if await find(client, self.name) is None:
            created = await create(
                client, self.name, self.partition_count, self.configs, exists_ok=True
            )
        topic = await wait_for_leaders(client, self.name)
        if len(topic.partitions) != self.partition_count:
            raise InvalidRequestError(
                f"topic {self.name} has {len(topic.partitions)} partitions,"
                f" but {self.partition_count} are needed"
            )
        return topic, created is not None


def partition_count_of(offset_map: OffsetMap, topic: str) -> int:
    """Return the partition count of a topic; without a catalog, of the partitions with records."""
    counts = [partition + 1 for name, partition in offset_map.partitions if name == topic]
    if topic in offset_map.catalog:
        counts.append(offset_map.catalog[topic].partition_count)
    return max(counts, default=0)


def configs_like(offset_map: OffsetMap, topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the configs of a new topic that is created like another."""
    own = offset_map.catalog[topic].configs if topic in offset_map.catalog else {}
    return {**own, **FIXED_CONFIGS, **overrides}
