"""The network between simulated brokers: calls that are lost, and arrive late or twice."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from kafscale.broker.transaction_coordinator.marker import Marker
from kafscale.control_plane.messages import AddPartitionsToTransactionRequest
from kafscale.errors import KafscaleError, StoreUnavailableError

if TYPE_CHECKING:
    from simulation.node_cluster import NodeCluster
    from simulation.node_process import NodeProcess

CALL_SECONDS_MAX = 15.0
DELAY_SECONDS = (0.0, 0.001, 0.001, 0.02, 0.5)
LATE_SECONDS = (0.1, 1, 20)
REPEATED_SHARE = 0.2
"""How many markers arrive twice; before version 2, they are like those of the next transaction."""

Request = Callable[["NodeProcess"], Awaitable[Sequence[int]]]


class NodePeers:
    """A broker's way to the others; calls are lost as often as those of the metadata store."""

    def __init__(self, cluster: "NodeCluster") -> None:
        self._cluster = cluster

    async def write_markers(self, broker_id: int, markers: Sequence[Marker]) -> Sequence[int]:
        messages = [marker.message for marker in markers]

        def request(node: "NodeProcess") -> Awaitable[Sequence[int]]:
            return node.transactions.write_markers(messages)

        may_repeat = all(marker.bumps_epoch for marker in markers)
        if may_repeat and self._cluster.random.random() < REPEATED_SHARE:
            outside = self._cluster.processes.outside.copy()
            late = asyncio.create_task(self._call_later(broker_id, request), context=outside)
            self._cluster.late_calls.add(late)
            late.add_done_callback(self._cluster.late_calls.discard)
        return await self._call(broker_id, request)

    async def add_to_transaction(
        self, broker_id: int, request: AddPartitionsToTransactionRequest
    ) -> Sequence[int]:
        return await self._call(broker_id, lambda node: node.transactions.verifier.answer(request))

    async def close(self) -> None:
        pass

    async def _call(self, broker_id: int, request: Request) -> Sequence[int]:
        cluster = self._cluster
        await asyncio.sleep(cluster.random.choice(DELAY_SECONDS))
        nodes = [node for node in cluster.live_nodes() if node.id == broker_id]
        if not nodes or cluster.random.random() < cluster.metadata_faults.refused:
            raise StoreUnavailableError("no broker responds (injected)")
        node = cluster.random.choice(nodes)
        task = node.call(lambda: request(node))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        await asyncio.wait({task}, timeout=CALL_SECONDS_MAX)
        if not task.done():
            task.cancel()  # As gRPC does; what the broker has begun may take effect.
        is_lost = cluster.random.random() < cluster.metadata_faults.response_lost
        if is_lost or not task.done() or task.cancelled():
            raise StoreUnavailableError("no response in time (injected)")
        return task.result()

    async def _call_later(self, broker_id: int, request: Request) -> None:
        await self._cluster.late.sleep(self._cluster.random.choice(LATE_SECONDS))
        with suppress(KafscaleError):
            await self._call(broker_id, request)
