"""The assignment feed: streams assignments and their changes to watchers.

Invariants: a watcher first gets everything that is assigned, then every later change, in order and
without a gap. Changes that arrive together are merged; a partition that changes its owner is
released by one broker before it is assigned to the other. No watcher delays another: one that falls
`events_max` behind is disconnected, and may watch again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kafscale.control_plane.messages import Partition, PartitionAssignmentEvent
from kafscale.errors import KafscaleError, OverloadedError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache

ASSIGNED: Final = "assigned"
MOVING: Final = "moving"
RELEASED: Final = "released"

WATCHERS_MAX: Final = 64
EVENTS_MAX: Final = 50_000
"""More than a whole cluster's partitions: a watcher this far behind does not read at all."""


class PartitionOwner(msgspec.Struct, frozen=True):
    """The owner of a partition."""

    broker_id: int
    epoch: int
    """The leader epoch."""
    reassigning_to: int | None = None


PartitionOwners = Mapping[Partition, PartitionOwner]


def partition_owners(cache: ClusterCache) -> PartitionOwners:
    """Everything that is assigned to live brokers."""
    return {
        Partition(each.topic, each.partition): PartitionOwner(
            each.broker_id, each.leader_epoch, each.reassigning_to
        )
        for each in cache.all_assignments()
        if each.is_owned_by(cache.brokers.get(each.broker_id))
    }


class AssignmentFeed:
    """Streams assignment changes to watchers."""

    def __init__(
        self,
        partition_owners: Callable[[], PartitionOwners],
        *,
        watchers_max: int = WATCHERS_MAX,
        events_max: int = EVENTS_MAX,
    ) -> None:
        """`partition_owners` returns all assignments; call `changed` after every change."""
        self._partition_owners = partition_owners
        self._watchers_max = watchers_max
        self._events_max = events_max
        self._watchers: set[_Watcher] = set()
        self._published: PartitionOwners = {}
        self._scheduled: asyncio.Handle | None = None
        self._closed = False

    def changed(self) -> None:
        """Notify the watchers, after all changes of this event loop iteration."""
        if self._watchers and self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._publish)

    async def watch(self, broker_id: str = "") -> AsyncGenerator[PartitionAssignmentEvent, None]:
        """Yield what a broker owns, or all of them, and then every change, until closed."""
        if len(self._watchers) >= self._watchers_max:
            raise OverloadedError(f"too many watchers: the limit is {self._watchers_max}")
        if self._closed:
            raise _closed()
        self._publish()
        watcher = _Watcher(broker_id, self._events_max)
        self._watchers.add(watcher)
        try:
            # Copies only the references; messages are built one by one.
            for partition, owner in list(self._published.items()):
                event = _owned_event(partition, owner, is_initial=True)
                if watcher.matches(event):
                    yield event
            while True:
                for event in await watcher.next_events():
                    yield event
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """End all watches."""
        self._closed = True
        for watcher in self._watchers:
            watcher.end(_closed())

    def _publish(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        before, self._published = self._published, dict(self._partition_owners())
        if not self._watchers:
            return
        events = list(changes(before, self._published))
        for watcher in self._watchers:
            watcher.take(events)


class _Watcher:
    """A watcher and its pending events."""

    __slots__ = ("_broker_id", "_end", "_events", "_events_max", "_ready")

    def __init__(self, broker_id: str, events_max: int) -> None:
        self._broker_id = broker_id
        self._events_max = events_max
        self._events: deque[PartitionAssignmentEvent] = deque()
        self._ready = asyncio.Event()
        self._end: KafscaleError | None = None

    def matches(self, event: PartitionAssignmentEvent) -> bool:
        return self._broker_id in {"", event.broker_id}

    def take(self, events: Sequence[PartitionAssignmentEvent]) -> None:
        self._events.extend(event for event in events if self.matches(event))
        if len(self._events) > self._events_max:
            self.end(
                OverloadedError("the watcher reads too slowly; watch again for the current state")
            )
        elif self._events:
            self._ready.set()

    def end(self, reason: KafscaleError) -> None:
        self._events.clear()
        self._end = reason
        self._ready.set()

    async def next_events(self) -> list[PartitionAssignmentEvent]:
        await self._ready.wait()
        if self._end is not None:
            raise self._end
        self._ready.clear()
        events = list(self._events)
        self._events.clear()
        return events


def changes(before: PartitionOwners, after: PartitionOwners) -> Iterator[PartitionAssignmentEvent]:
    """The events between two states, by partition; releases come before assignments."""
    owned = []
    for partition, owner in after.items():
        former = before.get(partition)
        if owner == former:
            continue
        if former is not None and former.broker_id != owner.broker_id:
            yield _event(partition, former, RELEASED)
        owned.append(_owned_event(partition, owner))
    for partition, former in before.items():
        if partition not in after:
            yield _event(partition, former, RELEASED)
    yield from owned


def _owned_event(
    partition: Partition, owner: PartitionOwner, *, is_initial: bool = False
) -> PartitionAssignmentEvent:
    status = ASSIGNED if owner.reassigning_to is None else MOVING
    event = _event(partition, owner, status)
    event.is_initial = is_initial
    if owner.reassigning_to is not None:
        event.moving_to = str(owner.reassigning_to)
    return event


def _event(partition: Partition, owner: PartitionOwner, status: str) -> PartitionAssignmentEvent:
    return PartitionAssignmentEvent(
        partition=partition.message,
        broker_id=str(owner.broker_id),
        status=status,
        epoch=owner.epoch,
    )


def _closed() -> StoreUnavailableError:
    return StoreUnavailableError("the server is closing; watch again, or at another broker")
