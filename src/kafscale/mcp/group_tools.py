"""Tools about consumer groups: members, offsets and lag."""

import msgspec

from kafscale.admin.cluster import lag
from kafscale.admin.cluster.snapshot import take_snapshot
from kafscale.admin.connection import ClusterConnections
from kafscale.admin.groups import groups
from kafscale.admin.topics.describe import sum_known
from kafscale.mcp.tool import ITEMS_MAX, Data, Tool, bounded


class GroupTools:
    """The tools, each a method."""

    def __init__(self, connections: ClusterConnections) -> None:
        self._connections = connections

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.list_groups, "List consumer groups"),
            Tool(self.describe_group, "Describe a consumer group"),
            Tool(self.consumer_lag, "Lag of consumer groups"),
        )

    async def list_groups(self, search: str = "", limit: int = ITEMS_MAX) -> Data:
        """Consumer groups whose names contain a text, with their states and types."""
        async with self._connections.client() as client:
            listed = await groups.list_all(client)
        chosen = [
            msgspec.to_builtins(each) for each in listed if search.lower() in each.group.lower()
        ]
        return bounded("groups", chosen, limit)

    async def describe_group(self, group: str) -> Data:
        """One group: its members, their assignments, committed offsets and lag."""
        async with self._connections.client() as client:
            (described,) = await groups.describe(client, [group])
        detail = msgspec.to_builtins(described)
        offsets = bounded("offsets", detail["offsets"])
        return {
            **detail,
            "lag": sum_known(row.lag for row in described.offsets),
            "members": detail["members"][:ITEMS_MAX],
            "memberCount": len(described.members),
            "offsets": offsets["offsets"],
            "offsetsLeftOut": offsets["leftOut"],
        }

    async def consumer_lag(self, group: str = "", limit: int = 50) -> Data:
        """The lag of one group or of all groups by topic, largest first."""
        lags = lag.from_snapshot(await take_snapshot(self._connections))
        chosen = {name: topics for name, topics in lags.items() if group in {"", name}}
        rows = msgspec.to_builtins(lag.largest(chosen, sum(map(len, chosen.values()))))
        return {"totalLag": lag.total(chosen), **bounded("lags", rows, limit)}
