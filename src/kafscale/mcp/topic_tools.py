"""What an assistant can ask about topics: how they are, how they are set up, what is kept."""

from kafscale.admin.cluster.snapshot import cluster_look
from kafscale.admin.connection import Reach
from kafscale.admin.topics import configs, describe, segments, usage, wal_tail
from kafscale.mcp.tool import ITEMS_MAX, Data, Tool, bounded


class TopicTools:
    """The tools, each a method."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.list_topics, "List topics"),
            Tool(self.describe_topic, "Describe a topic"),
            Tool(self.topic_configs, "Configuration of a topic"),
            Tool(self.segment_inventory, "Segments of a partition"),
        )

    async def list_topics(self, search: str = "", limit: int = ITEMS_MAX) -> Data:
        """Topics whose names contain a text, with their partitions, records and sizes."""
        look = await cluster_look(self._reach)
        found = [
            {
                "name": each.name,
                "partitionCount": each.partition_count,
                "leaderlessCount": each.leaderless_count,
                "recordCount": each.record_count,
                "sizeBytes": each.size_bytes,
                "internal": each.internal,
            }
            for name, each in sorted(usage.topic_figures(look).items())
            if search.lower() in name.lower()
        ]
        return bounded("topics", found, limit) | {"problem": look.listing_problem or look.problem}

    async def describe_topic(self, topic: str) -> Data:
        """One topic and its partitions: leaders, offsets, what is in segments and in the WAL."""
        found = await describe.look(self._reach, topic)
        return found | bounded("partitions", found["partitions"])

    async def topic_configs(self, topic: str, only_changed: bool = False) -> Data:
        """The configuration of a topic, with defaults and what each setting means."""
        async with self._reach.client() as client:
            found = await configs.describe(client, topic)
        chosen = [each for each in found if each["isSet"] or not only_changed]
        return {"topic": topic, **bounded("configs", chosen)}

    async def segment_inventory(self, topic: str, partition: int = 0, limit: int = 50) -> Data:
        """Segments of a partition in the object store, the newest first, and its WAL tail."""
        found = await describe.look(self._reach, topic)
        chosen = describe.find_partition(found, partition)
        namespace = self._reach.namespace
        async with self._reach.objects() as store:
            tail = await wal_tail.wal_tail(
                store, namespace, bytes.fromhex(found["topicId"]), chosen
            )
            listed = await segments.inventory(
                store, namespace, topic, partition, first=0, count=max(1, min(limit, ITEMS_MAX))
            )
        return {"topic": topic, **listed, "wal": tail}
