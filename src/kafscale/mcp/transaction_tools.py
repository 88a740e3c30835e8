"""Tools that read transactions: all of a cluster, and hanging ones."""

import msgspec

from kafscale.admin.connection import ClusterConnections
from kafscale.admin.transactions import hanging, transactions
from kafscale.admin.transactions.transactions import OPEN_STATES, TransactionFilter
from kafscale.aio.clock import clock
from kafscale.mcp.tool import ITEMS_MAX, Data, Tool, bounded


class TransactionTools:
    """The tools, each a method."""

    def __init__(self, connections: ClusterConnections) -> None:
        self._connections = connections

    def all(self) -> tuple[Tool, ...]:
        return (
            Tool(self.list_transactions, "List transactions"),
            Tool(self.find_hanging_transactions, "Find hanging transactions"),
        )

    async def list_transactions(
        self, search: str = "", only_open: bool = False, limit: int = ITEMS_MAX
    ) -> Data:
        """Transactional ids that contain a text: state, producer, start and partitions.

        With `only_open`, only those with a transaction that has not ended.
        """
        chosen = TransactionFilter(states=OPEN_STATES if only_open else ())
        async with self._connections.client() as client:
            matching = [
                each
                for each in await transactions.list_all(client, chosen)
                if search.lower() in each.transactional_id.lower()
            ]
            listed = bounded("transactions", matching, limit)
            described = await transactions.describe_listed(client, listed["transactions"])
        return listed | {"transactions": msgspec.to_builtins(described)}

    async def find_hanging_transactions(self) -> Data:
        """Transactions that are open in a partition but unknown to coordinators.

        They hold back the read_committed consumers of the partition until they are aborted.
        """
        async with self._connections.client() as client:
            found = await hanging.find(client, now_ms=clock())
        return bounded("transactions", msgspec.to_builtins(found))
