"""The topic that a job writes into: the one that is there, or a new one like the source.

A new topic has the partitions and the configs of its source, but keeps what it gets: old records
would else be deleted by the time they arrive. Times are those of the records. The configs that
somebody asks for stand above all that.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kafscale.client.client import Client
from kafscale.client.topics import create, find, led
from kafscale.errors import InvalidRequestError
from kafscale.protocol.messages.metadata import TopicMetadata
from kafscale.spark.plan.offset_map import OffsetMap

KEPT: Final = {
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""What a new topic has whatever its source has."""


class Target(msgspec.Struct, frozen=True):
    """What a job asks of the topic that it writes into."""

    name: str
    partition_count: int
    configs: Mapping[str, str] = {}

    async def ready(self, client: Client) -> tuple[TopicMetadata, bool]:
        """The topic, which can be written to, and whether it is a new one."""
        created = None
        if await find(client, self.name) is None:
            created = await create(
                client, self.name, self.partition_count, self.configs, exists_ok=True
            )
        topic = await led(client, self.name)
        if len(topic.partitions) != self.partition_count:
            raise InvalidRequestError(
                f"topic {self.name} has {len(topic.partitions)} partitions,"
                f" but {self.partition_count} are needed"
            )
        return topic, created is not None


def partition_count_of(log: OffsetMap, topic: str) -> int:
    """How many partitions a topic has; where no catalog tells, those that hold something."""
    counts = [partition + 1 for name, partition in log.partitions if name == topic]
    if topic in log.catalog:
        counts.append(log.catalog[topic].partitions)
    return max(counts, default=0)


def configs_like(log: OffsetMap, topic: str, asked: Mapping[str, str]) -> dict[str, str]:
    """The configs of a new topic like another."""
    own = log.catalog[topic].configs if topic in log.catalog else {}
    return {**own, **KEPT, **asked}
