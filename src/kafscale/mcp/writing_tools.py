"""What an assistant can change, where it is allowed to: topics, groups, records, segments.

The law: what deletes has to be named twice, and a reset only shows what it would do unless it is to
be executed.
"""

from typing import Literal

from kafscale.admin.cluster import brokers
from kafscale.admin.connection import Reach
from kafscale.admin.groups import groups
from kafscale.admin.groups.reset import reset
from kafscale.admin.groups.reset_aim import Aim, Kind
from kafscale.admin.messages.codecs import configured
from kafscale.admin.messages.input_parser import Typed
from kafscale.admin.messages.produce import NewRecord, produce
from kafscale.admin.topics import configs as topics_configs
from kafscale.admin.topics import describe, topics
from kafscale.errors import InvalidRequestError
from kafscale.mcp.tool import Data, Tool, bounded
from kafscale.text.formatting import clock


class WritingTools:
    """The tools, each a method."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.create_topic, "Create a topic", changes=True),
            Tool(self.alter_topic_configs, "Change the configuration of a topic", changes=True),
            Tool(self.add_partitions, "Give a topic more partitions", changes=True),
            Tool(self.delete_topic, "Delete a topic", changes=True, destroys=True),
            Tool(self.produce_message, "Write a record", changes=True),
            Tool(self.reset_offsets, "Move a consumer group", changes=True, destroys=True),
            Tool(self.delete_group, "Delete a consumer group", changes=True, destroys=True),
            Tool(self.flush_topic, "Make segments of a topic", changes=True),
        )

    async def create_topic(
        self, topic: str, partitions: int | None = None, configs: dict[str, str] | None = None
    ) -> Data:
        """Create a topic; without a number of partitions, with as many as brokers give it."""
        async with self._reach.client() as client:
            made = await topics.create(client, topic, partitions, configs or {}, exists_ok=False)
        return made or {}

    async def alter_topic_configs(
        self,
        topic: str,
        values: dict[str, str] | None = None,
        back_to_default: list[str] | None = None,
    ) -> Data:
        """Set some configs of a topic, and take others back to their defaults."""
        if not (values or back_to_default):
            raise InvalidRequestError("nothing is to be changed; name a config")
        async with self._reach.client() as client:
            await topics.alter_configs(client, topic, values or {}, back_to_default or ())
            found = await topics_configs.describe(client, topic)
        return {"topic": topic, **bounded("configs", [each for each in found if each["isSet"]])}

    async def add_partitions(self, topic: str, partitions: int) -> Data:
        """Let a topic have so many partitions, which have to be more than it has now."""
        async with self._reach.client() as client:
            await topics.grow(client, topic, partitions)
        return {"topic": topic, "partitionCount": partitions}

    async def delete_topic(self, topic: str, confirm: str) -> Data:
        """Delete a topic with all its records, for ever; `confirm` is its name once more."""
        _confirm(topic, confirm)
        async with self._reach.client() as client:
            await topics.delete_one(client, topic)
        return {"deleted": topic}

    async def produce_message(
        self,
        topic: str,
        value: str | None,
        key: str | None = None,
        partition: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> Data:
        """Write one record as text; without a value it is a tombstone. Tells where it is."""
        new = NewRecord(
            partition=partition,
            key=None if key is None else Typed(text=key, format="text"),
            value=None if value is None else Typed(text=value, format="text"),
            headers=tuple((headers or {}).items()),
            timestamp_ms=clock(),
        )
        async with self._reach.client() as client:
            written = await produce(client, topic, new, configured(self._reach.config))
        return {
            "topic": topic,
            "partition": written.partition,
            "offset": written.offset,
            "timestampMs": written.timestamp_ms,
        }

    async def reset_offsets(
        self,
        group: str,
        to: Literal["earliest", "latest", "offset", "shift", "time"],
        number: int = 0,
        topic: str | None = None,
        execute: bool = False,
    ) -> Data:
        """Show where a group without members would go on, or send it there with `execute`.

        `number` is the offset, how many records to shift by, or milliseconds since 1970.
        """
        chosen = None if topic is None else {topic: ()}
        async with self._reach.client() as client:
            rows = await reset(client, group, chosen, Aim(Kind(to), number), execute=execute)
        return {"executed": execute, **bounded("partitions", rows)}

    async def delete_group(self, group: str, confirm: str) -> Data:
        """Delete a group that has no members, and its offsets; `confirm` is its name again."""
        _confirm(group, confirm)
        async with self._reach.client() as client:
            await groups.delete_one(client, group)
        return {"deleted": group}

    async def flush_topic(self, topic: str) -> Data:
        """Have segments made of what is only in the write-ahead log of a topic."""
        await describe.look(self._reach, topic)
        async with self._reach.cluster() as cluster:
            flushed = await brokers.flush(cluster, topic, ())
        return {"topic": topic, **bounded("partitions", flushed)}


def _confirm(name: str, confirm: str) -> None:
    if confirm != name:
        raise InvalidRequestError(f"to delete {name}, say its name again as `confirm`")
