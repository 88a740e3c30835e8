"""What an assistant can ask about consumer groups: who reads, and how far behind they are."""

from kafscale.admin.cluster import lag
from kafscale.admin.cluster.snapshot import cluster_look
from kafscale.admin.connection import Reach
from kafscale.admin.groups import groups
from kafscale.admin.topics.describe import total
from kafscale.mcp.tool import ITEMS_MAX, Data, Tool, bounded


class GroupTools:
    """The tools, each a method."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.list_groups, "List consumer groups"),
            Tool(self.describe_group, "Describe a consumer group"),
            Tool(self.consumer_lag, "Lag of consumer groups"),
        )

    async def list_groups(self, search: str = "", limit: int = ITEMS_MAX) -> Data:
        """Consumer groups whose names contain a text, with their states and types."""
        async with self._reach.client() as client:
            found = await groups.list_all(client)
        chosen = [each for each in found if search.lower() in each["group"].lower()]
        return bounded("groups", chosen, limit)

    async def describe_group(self, group: str) -> Data:
        """One group: its members, what they are assigned, committed offsets and lag."""
        async with self._reach.client() as client:
            (found,) = await groups.describe(client, [group])
        offsets = bounded("offsets", found["offsets"])
        return {
            **found,
            "lag": total(row["lag"] for row in found["offsets"]),
            "members": found["members"][:ITEMS_MAX],
            "memberCount": len(found["members"]),
            "offsets": offsets["offsets"],
            "offsetsLeftOut": offsets["leftOut"],
        }

    async def consumer_lag(self, group: str = "", limit: int = 50) -> Data:
        """Which groups lag behind in which topics, the largest first; of one group, or of all."""
        lags = lag.of_look(await cluster_look(self._reach))
        chosen = {name: topics for name, topics in lags.items() if group in {"", name}}
        rows = [
            {"group": each.group, "topic": each.topic, "lag": each.lag}
            for each in lag.largest(chosen, sum(map(len, chosen.values())))
        ]
        return {"totalLag": lag.total(chosen), **bounded("lags", rows, limit)}
