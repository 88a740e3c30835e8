"""Who watches the assignments, and what each of them is told.

The laws: a watcher is told first of everything that is assigned, then of every change after that,
in order and without a gap. Changes that arrive together are told as one; a partition that changes
its owner is released by one broker before it is assigned to the other. Nobody waits for a watcher:
one that falls `events_max` behind is cut off, and may begin again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kafscale.control_plane.messages import PartitionAssignmentEvent
from kafscale.control_plane.partition import Partition
from kafscale.errors import KafscaleError, OverloadedError, StoreUnavailableError
from kafscale.metadata.cluster.cluster_cache import ClusterCache

ASSIGNED: Final = "assigned"
MOVING: Final = "moving"
RELEASED: Final = "released"

WATCHERS_MAX: Final = 64
EVENTS_MAX: Final = 50_000
"""More than a whole cluster's worth: who is so far behind does not read at all."""


class Holding(msgspec.Struct, frozen=True):
    """Who owns a partition."""

    broker_id: int
    epoch: int
    """The leader epoch."""
    reassigning_to: int | None = None


Holdings = Mapping[Partition, Holding]


def holdings(view: ClusterCache) -> Holdings:
    """Everything that is assigned in a cluster, to brokers that are alive."""
    return {
        Partition(each.topic, each.partition): Holding(
            each.broker_id, each.leader_epoch, each.reassigning_to
        )
        for each in view.all_assignments()
        if each.is_owned_by(view.brokers.get(each.broker_id))
    }


class AssignmentFeed:
    """Tells watchers what changes."""

    def __init__(
        self,
        holdings: Callable[[], Holdings],
        *,
        watchers_max: int = WATCHERS_MAX,
        events_max: int = EVENTS_MAX,
    ) -> None:
        """`holdings` is everything that is assigned; `changed` has to be called when it is not."""
        self._holdings = holdings
        self._watchers_max = watchers_max
        self._events_max = events_max
        self._watchers: set[_Watcher] = set()
        self._told: Holdings = {}
        self._due: asyncio.Handle | None = None
        self._closed = False

    def changed(self) -> None:
        """Have the watchers told, once all that changes in this moment has changed."""
        if self._watchers and self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._tell)

    async def watch(self, broker_id: str = "") -> AsyncGenerator[PartitionAssignmentEvent, None]:
        """What a broker holds, or all of them, and then every change, until it is closed."""
        if len(self._watchers) >= self._watchers_max:
            raise OverloadedError(f"{self._watchers_max} watch already, which is the most")
        if self._closed:
            raise _closed()
        self._tell()
        watcher = _Watcher(broker_id, self._events_max)
        self._watchers.add(watcher)
        try:
            # A copy of the references only; the messages are made one by one.
            for partition, holding in list(self._told.items()):
                event = _held(partition, holding, is_initial=True)
                if watcher.wants(event):
                    yield event
            while True:
                for event in await watcher.news():
                    yield event
        finally:
            self._watchers.discard(watcher)

    def close(self) -> None:
        """Send all watchers away."""
        self._closed = True
        for watcher in self._watchers:
            watcher.end(_closed())

    def _tell(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        before, self._told = self._told, dict(self._holdings())
        if not self._watchers:
            return
        events = list(changes(before, self._told))
        for watcher in self._watchers:
            watcher.take(events)


class _Watcher:
    """One who watches, and what it has not been told yet."""

    __slots__ = ("_broker_id", "_end", "_events", "_events_max", "_news")

    def __init__(self, broker_id: str, events_max: int) -> None:
        self._broker_id = broker_id
        self._events_max = events_max
        self._events: deque[PartitionAssignmentEvent] = deque()
        self._news = asyncio.Event()
        self._end: KafscaleError | None = None

    def wants(self, event: PartitionAssignmentEvent) -> bool:
        return self._broker_id in {"", event.broker_id}

    def take(self, events: Sequence[PartitionAssignmentEvent]) -> None:
        self._events.extend(event for event in events if self.wants(event))
        if len(self._events) > self._events_max:
            self.end(OverloadedError("you read too slowly; watch again for what there is now"))
        elif self._events:
            self._news.set()

    def end(self, reason: KafscaleError) -> None:
        self._events.clear()
        self._end = reason
        self._news.set()

    async def news(self) -> list[PartitionAssignmentEvent]:
        await self._news.wait()
        if self._end is not None:
            raise self._end
        self._news.clear()
        events = list(self._events)
        self._events.clear()
        return events


def changes(before: Holdings, after: Holdings) -> Iterator[PartitionAssignmentEvent]:
    """What happened between two moments, by partition; releases come before assignments."""
    held = []
    for partition, holding in after.items():
        was = before.get(partition)
        if holding == was:
            continue
        if was is not None and was.broker_id != holding.broker_id:
            yield _event(partition, was, RELEASED)
        held.append(_held(partition, holding))
    for partition, was in before.items():
        if partition not in after:
            yield _event(partition, was, RELEASED)
    yield from held


def _held(
    partition: Partition, holding: Holding, *, is_initial: bool = False
) -> PartitionAssignmentEvent:
    status = ASSIGNED if holding.reassigning_to is None else MOVING
    event = _event(partition, holding, status)
    event.is_initial = is_initial
    if holding.reassigning_to is not None:
        event.moving_to = str(holding.reassigning_to)
    return event


def _event(partition: Partition, holding: Holding, status: str) -> PartitionAssignmentEvent:
    return PartitionAssignmentEvent(
        partition=partition.message,
        broker_id=str(holding.broker_id),
        status=status,
        epoch=holding.epoch,
    )


def _closed() -> StoreUnavailableError:
    return StoreUnavailableError("this watch ends here; ask another one, or again")
