"""Polls the cluster every few seconds; all pages are served from the result.

Invariants: readers get the last snapshot at once, and never wait for a broker. A failed poll is
logged, and the next one is made. Expensive polls are made less often. Topics and groups are listed
while there are readers, and when brokers serve other topics than before: a console without readers
must not keep a cluster awake.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from kafscale.admin.cluster import metadata_health
from kafscale.admin.cluster.metadata_health import MetadataHealth
from kafscale.admin.cluster.snapshot import ClusterPoller
from kafscale.admin.connection import ClusterConnections
from kafscale.console.monitor import views
from kafscale.console.monitor.state import MonitorState
from kafscale.console.monitor.views import SnapshotViews, overview
from kafscale.console.schema.base import Series
from kafscale.console.schema.cluster import BrokerDetail, Overview
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic
from kafscale.errors import OverloadedError, ResourceNotFoundError
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)

POLL_SECONDS: Final = 2.0
POLLS_PER_LISTING: Final = 5
"""While there are readers, topics and groups are listed at every fifth poll."""
ATTENTION_SECONDS: Final = 60.0
"""How long after the last request there is still considered to be a reader."""
ETCD_SECONDS: Final = 30.0
PAUSE_SECONDS_MAX: Final = 30.0
CPU_SHARE_MAX: Final = 0.1
"""The share of a core that polling may use."""
PARTITIONS_SHOWN_MAX: Final = 1_000

SUBSCRIBERS_MAX: Final = 100


class ClusterMonitor:
    """Polls a cluster, and keeps its recent history."""

    def __init__(
        self,
        connections: ClusterConnections,
        *,
        poll_seconds: float = POLL_SECONDS,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connections = connections
        self._poll_seconds = poll_seconds
        self._timer = timer
        self._poller = ClusterPoller(connections)
        self._state: MonitorState | None = None
        self._subscribers = Subscribers()
        self._poll_lock = asyncio.Lock()
        self._listings_started = 0
        self._last_read = self._last_listing = float("-inf")
        self._etcd_health: MetadataHealth | None = metadata_health.unchecked(
            connections.config.etcd
        )
        self._views: SnapshotViews | None = None

    # --- reading ------------------------------------------------------------------------------

    @property
    def overview(self) -> Overview | None:
        """The overview; None before the first poll."""
        current = self._current_views()
        return current.overview if current else None

    @property
    def overview_json(self) -> bytes | None:
        """The overview as JSON, encoded once for all readers."""
        current = self._current_views()
        return current.overview_json if current else None

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics by name."""
        current = self._current_views()
        return current.topics if current else {}

    @property
    def groups(self) -> Mapping[str, Group]:
        """All groups by name."""
        current = self._current_views()
        return current.groups if current else {}

    @property
    def as_of_ms(self) -> int:
        return self._state.snapshot.at_ms if self._state else 0

    def broker(self, broker_id: int) -> BrokerDetail:
        """A broker that is live or was so recently."""
        self._current_views()
        state = self._state
        for each in state.brokers if state else ():
            if state is not None and each.broker.id == broker_id:
                return BrokerDetail(
                    broker=views.broker(each, state.rates),
                    partitions=views.partitions(each.broker, PARTITIONS_SHOWN_MAX),
                    partition_total=len(each.broker.partitions),
                    throughput=state.broker_throughput(broker_id),
                )
        known = ", ".join(str(each.broker.id) for each in state.brokers) if state else ""
        raise ResourceNotFoundError(
            f"there is no broker {broker_id}; the brokers are: {known or 'none'}"
        )

    def topic_throughput(self, name: str) -> list[Series]:
        """`produce` and `fetch` of a topic, in bytes per second."""
        return self._state.topic_throughput(name) if self._state else []

    def lag_history(self, group: str) -> list[Series]:
        """The lag of a group, one series per topic."""
        return self._state.lag_history(group) if self._state else []

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Overview]]:
        """Iterate over overviews, one per poll; a slow reader skips overviews."""
        with self._subscribers.subscribe(self.overview) as updates:
            yield updates

    # --- polling ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Poll until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._poll_forever())
            tasks.create_task(self._check_etcd_forever())

    async def refresh(self) -> None:
        """Poll now, with topics and groups: the result includes changes made before the call."""
        await self._poll(with_listing=True)

    async def _poll(self, *, with_listing: bool) -> None:
        started_before = self._listings_started
        async with self._poll_lock:
            # Another caller's listing that started after this call serves this one as well.
            if with_listing and self._listings_started > started_before:
                return
            if with_listing:
                self._listings_started += 1
                self._last_listing = self._timer()
            snapshot = await self._poller.poll(with_listing=with_listing)
            if self._state is None:
                self._state = MonitorState(snapshot)
            else:
                self._state.update(snapshot)
            self._publish()

    async def _poll_forever(self) -> None:
        while True:
            started, spent = self._timer(), time.thread_time()
            try:
                await self._poll(with_listing=self._is_listing_due())
            except Exception:
                logger.exception("cluster poll failed")
            await asyncio.sleep(
                pause_seconds(
                    self._poll_seconds, self._timer() - started, time.thread_time() - spent
                )
            )

    async def _check_etcd_forever(self) -> None:
        """Separate from the poll, so that a hanging member delays nothing."""
        while self._etcd_health is not None:
            try:
                self._etcd_health = await metadata_health.check_etcd(self._connections.config.etcd)
            except Exception:
                logger.exception("etcd check failed")
            await asyncio.sleep(ETCD_SECONDS)

    def _is_listing_due(self) -> bool:
        now = self._timer()
        has_readers = len(self._subscribers) > 0 or now - self._last_read < ATTENTION_SECONDS
        is_stale = now - self._last_listing >= POLLS_PER_LISTING * self._poll_seconds
        return self._state is None or (has_readers and is_stale)

    def _publish(self) -> None:
        assert self._state is not None
        newest = overview(
            self._state,
            metadata_health.evaluate(self._etcd_health, self._state.snapshot),
            store_description=self._connections.store_description,
            is_bucket=bool(self._connections.config.s3.bucket),
        )
        self._views = SnapshotViews(self._state, newest)
        self._subscribers.publish(newest)

    def _current_views(self) -> SnapshotViews | None:
        """The current views; records that there is a reader."""
        self._last_read = self._timer()
        return self._views


def pause_seconds(poll_seconds: float, took_seconds: float, cpu_seconds: float) -> float:
    """How long to pause after a poll that took this long and used this much CPU time.

    >>> pause_seconds(2.0, took_seconds=0.1, cpu_seconds=0.05)
    2.0
    >>> pause_seconds(2.0, took_seconds=0.9, cpu_seconds=0.5)
    5.0
    >>> pause_seconds(2.0, took_seconds=4.0, cpu_seconds=0.05)
    4.0
    """
    pause = max(poll_seconds, took_seconds, cpu_seconds / CPU_SHARE_MAX)
    return max(poll_seconds, min(pause, PAUSE_SECONDS_MAX))


class Subscribers:
    """Subscribers of overview updates; their number is bounded.

    A slow subscriber gets the newest overview when it reads again, and none in between.
    """

    def __init__(self, limit: int = SUBSCRIBERS_MAX) -> None:
        self._limit = limit
        self._mailboxes: set[_Mailbox] = set()

    def __len__(self) -> int:
        return len(self._mailboxes)

    @contextmanager
    def subscribe(self, first: Overview | None) -> Iterator[AsyncIterator[Overview]]:
        """Yield an iterator of updates for the block; `first` is delivered at once."""
        if len(self._mailboxes) >= self._limit:
            raise OverloadedError(
                f"{self._limit} event streams are open already, which is the limit; close some"
            )
        mailbox = _Mailbox(first)
        self._mailboxes.add(mailbox)
        try:
            yield mailbox.updates()
        finally:
            self._mailboxes.discard(mailbox)

    def publish(self, newest: Overview) -> None:
        for mailbox in self._mailboxes:
            mailbox.put(newest)


class _Mailbox:
    """Holds the newest overview."""

    def __init__(self, first: Overview | None) -> None:
        self._newest = first
        self._arrived = asyncio.Event()
        if first is not None:
            self._arrived.set()

    def put(self, newest: Overview) -> None:
        self._newest = newest
        self._arrived.set()

    async def updates(self) -> AsyncIterator[Overview]:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            assert self._newest is not None
            yield self._newest
