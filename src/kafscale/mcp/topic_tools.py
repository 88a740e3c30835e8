"""Tools about topics: size, partitions, configuration and segments."""

import msgspec

from kafscale.admin.cluster.snapshot import take_snapshot
from kafscale.admin.connection import ClusterConnections
from kafscale.admin.topics import configs, describe, segments, usage, wal_tail
from kafscale.mcp.tool import ITEMS_MAX, Data, Tool, bounded, to_json

_USAGE_FIELDS = tuple(each for each in usage.TopicUsage.__struct_fields__ if each != "topic_id")


class TopicTools:
    """The tools, each a method."""

    def __init__(self, connections: ClusterConnections) -> None:
        self._connections = connections

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.list_topics, "List topics"),
            Tool(self.describe_topic, "Describe a topic"),
            Tool(self.topic_configs, "Configuration of a topic"),
            Tool(self.segment_inventory, "Segments of a partition"),
        )

    async def list_topics(self, search: str = "", limit: int = ITEMS_MAX) -> Data:
        """Topics whose names contain a text, with their partitions, records and sizes."""
        snapshot = await take_snapshot(self._connections)
        topics = [
            to_json(each, _USAGE_FIELDS)
            for name, each in sorted(usage.topic_usage(snapshot).items())
            if search.lower() in name.lower()
        ]
        return bounded("topics", topics, limit) | {
            "problem": snapshot.listing_problem or snapshot.problem
        }

    async def describe_topic(self, topic: str) -> Data:
        """One topic and its partitions: leaders, offsets, what is in segments and in the WAL."""
        description = msgspec.to_builtins(await describe.describe_topic(self._connections, topic))
        return {**description, **bounded("partitions", description["partitions"])}

    async def topic_configs(self, topic: str, only_changed: bool = False) -> Data:
        """The configuration of a topic, with defaults and documentation."""
        async with self._connections.client() as client:
            described = await configs.describe(client, topic)
        chosen = [
            msgspec.to_builtins(each) for each in described if each.is_set or not only_changed
        ]
        return {"topic": topic, **bounded("configs", chosen)}

    async def segment_inventory(self, topic: str, partition: int = 0, limit: int = 50) -> Data:
        """Segments of a partition in the object store, newest first, and its WAL tail."""
        description = await describe.describe_topic(self._connections, topic)
        chosen = description.find_partition(partition)
        namespace = self._connections.namespace
        async with self._connections.objects() as store:
            tail = await wal_tail.wal_tail(
                store, namespace, bytes.fromhex(description.topic_id), chosen
            )
            inventory = await segments.list_segments(
                store, namespace, topic, partition, first=0, count=max(1, min(limit, ITEMS_MAX))
            )
        return {"topic": topic, **msgspec.to_builtins(inventory), "wal": msgspec.to_builtins(tail)}
