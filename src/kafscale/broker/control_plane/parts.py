"""The parts of a broker that the control plane looks at and directs, as it needs to know them."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from kafscale.broker.cluster.controller.plan.planner import Place
from kafscale.metadata.cluster.cluster_cache import ClusterView
from kafscale.metadata.schema.model import BrokerInfo
from kafscale.metadata.topics.catalog import Catalog
from kafscale.storage.engine import StorageEngine
from kafscale.storage.log.partition_log import PartitionLog
from kafscale.storage.segments.swap import SwapResult


class Membership(Protocol):
    """The broker's place among the living."""

    @property
    def registration(self) -> BrokerInfo | None: ...


class Ownership(Protocol):
    """What the broker owns, and how it gives that away."""

    async def drain(
        self, partitions: Collection[Place] | None, deadline_seconds: float
    ) -> tuple[Collection[Place], Collection[Place]]:
        """Hand over these, or everything for good; what is gone, and what is not in time."""


class Controller(Protocol):
    """The one who plans, if it is this broker."""

    @property
    def is_controller(self) -> bool: ...

    async def rebalance(self) -> int:
        """Plan now; how many moves are under way once the view shows the plan."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Everything that is needed, gathered by the composition root."""

    broker_id: int
    cluster_id: str
    namespace: str
    view: ClusterView
    catalog: Catalog
    storage: StorageEngine
    swap: Callable[[PartitionLog, str], Awaitable[SwapResult]]
    membership: Membership
    ownership: Ownership
    controller: Controller
    problems: Callable[[], Mapping[str, str]]
    """What stands in the way of serving clients, and why."""
    store_health: Callable[[], str]
    clock: Callable[[], int]
