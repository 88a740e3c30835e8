"""Tools that change a cluster, if writes are allowed: topics, groups, records, segments.

Deletions must repeat the name, and a reset is only planned unless `execute` is set.
"""

from typing import Literal

import msgspec

from kafscale.admin.cluster import operations
from kafscale.admin.connection import ClusterConnections
from kafscale.admin.groups import groups
from kafscale.admin.groups.reset import ResetTarget, TargetKind, reset
from kafscale.admin.messages.codecs import from_config
from kafscale.admin.messages.produce import NewRecord, PayloadInput, produce
from kafscale.admin.topics import configs as topics_configs
from kafscale.admin.topics import describe, topics
from kafscale.admin.transactions import transactions
from kafscale.aio.clock import clock
from kafscale.errors import InvalidRequestError
from kafscale.mcp.tool import Data, Tool, bounded, to_json


class WritingTools:
    """The tools, each a method."""

    def __init__(self, connections: ClusterConnections) -> None:
        self._connections = connections

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.create_topic, "Create a topic", is_write=True),
            Tool(self.alter_topic_configs, "Change the configuration of a topic", is_write=True),
            Tool(self.add_partitions, "Add partitions to a topic", is_write=True),
            Tool(self.delete_topic, "Delete a topic", is_write=True, is_destructive=True),
            Tool(self.produce_message, "Write a record", is_write=True),
            Tool(
                self.reset_offsets,
                "Reset offsets of a consumer group",
                is_write=True,
                is_destructive=True,
            ),
            Tool(self.delete_group, "Delete a consumer group", is_write=True, is_destructive=True),
            Tool(self.abort_transaction, "Abort a transaction", is_write=True, is_destructive=True),
            Tool(self.flush_topic, "Flush a topic to segments", is_write=True),
        )

    async def create_topic(
        self, topic: str, partitions: int | None = None, configs: dict[str, str] | None = None
    ) -> Data:
        """Create a topic; without a number of partitions, with the brokers' default."""
        async with self._connections.client() as client:
            created = await topics.create(client, topic, partitions, configs or {}, exists_ok=False)
        return {} if created is None else to_json(created)

    async def alter_topic_configs(
        self,
        topic: str,
        values: dict[str, str] | None = None,
        back_to_default: list[str] | None = None,
    ) -> Data:
        """Set some configs of a topic, and reset others to their defaults."""
        if not (values or back_to_default):
            raise InvalidRequestError("no change requested: name a config to set or to reset")
        async with self._connections.client() as client:
            await topics.alter_configs(client, topic, values or {}, back_to_default or ())
            described = await topics_configs.describe(client, topic)
        changed = [to_json(each) for each in described if each.is_set]
        return {"topic": topic, **bounded("configs", changed)}

    async def add_partitions(self, topic: str, partitions: int) -> Data:
        """Increase the number of partitions of a topic to `partitions`."""
        async with self._connections.client() as client:
            await topics.create_partitions(client, topic, partitions)
        return {"topic": topic, "partitionCount": partitions}

    async def delete_topic(self, topic: str, confirm: str) -> Data:
        """Delete a topic with all its records, permanently; `confirm` repeats its name."""
        _confirm(topic, confirm)
        async with self._connections.client() as client:
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
        """Write one record as text; without a value it is a tombstone. Returns its offset."""
        new = NewRecord(
            partition=partition,
            key=None if key is None else PayloadInput(text=key, format="text"),
            value=None if value is None else PayloadInput(text=value, format="text"),
            headers=tuple((headers or {}).items()),
            timestamp_ms=clock(),
        )
        async with self._connections.client() as client:
            written = await produce(client, topic, new, from_config(self._connections.config))
        return {"topic": topic, **to_json(written)}

    async def reset_offsets(
        self,
        group: str,
        to: Literal["earliest", "latest", "offset", "shift", "time"],
        number: int = 0,
        topic: str | None = None,
        execute: bool = False,
    ) -> Data:
        """Plan an offset reset of a group without members, or do it with `execute`.

        `number` is the offset, the shift in records, or milliseconds since 1970.
        """
        chosen = None if topic is None else {topic: ()}
        async with self._connections.client() as client:
            rows = await reset(
                client, group, chosen, ResetTarget(TargetKind(to), number), execute=execute
            )
        return {"executed": execute, **bounded("partitions", msgspec.to_builtins(rows))}

    async def delete_group(self, group: str, confirm: str) -> Data:
        """Delete a group that has no members, and its offsets; `confirm` repeats its name."""
        _confirm(group, confirm)
        async with self._connections.client() as client:
            await groups.delete_one(client, group)
        return {"deleted": group}

    async def abort_transaction(self, transactional_id: str, confirm: str) -> Data:
        """Abort an open transaction and fence its producer; `confirm` repeats its id."""
        _confirm(transactional_id, confirm, "abort the transaction of")
        async with self._connections.client() as client:
            before = await transactions.abort(client, transactional_id)
        return {"transactionalId": transactional_id, "stateBefore": before.state}

    async def flush_topic(self, topic: str) -> Data:
        """Write segments of everything that is only in the write-ahead log of a topic."""
        await describe.describe_topic(self._connections, topic)
        async with self._connections.control_plane() as control:
            flushed = await operations.flush(control, topic, ())
        return {"topic": topic, **bounded("partitions", msgspec.to_builtins(flushed))}


def _confirm(name: str, confirm: str, action: str = "delete") -> None:
    if confirm != name:
        raise InvalidRequestError(f"to {action} {name}, repeat its name as `confirm`")
