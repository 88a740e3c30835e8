"""What is watched of a cluster: a look every few seconds, from which all pages are answered.

The laws: whoever asks for what was seen gets it at once, as of the last look; nobody waits for a
broker. A look that goes wrong is told of and the next one is made all the same. A look that costs
much is made less often. Topics and groups are listed while somebody is there to see them, and when
the brokers tell that something has changed: a console that nobody looks at is no client that keeps
a cluster awake.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from kafscale.admin.cluster.metadata_health import MetadataLook, etcd_look, metadata_look, unasked
from kafscale.admin.cluster.snapshot import Lookout
from kafscale.admin.connection import Reach
from kafscale.console.monitor import views
from kafscale.console.monitor.event import Told
from kafscale.console.monitor.overview import overview
from kafscale.console.monitor.state import Remembered
from kafscale.console.monitor.subscribers import Subscribers
from kafscale.console.schema.base import Series
from kafscale.console.schema.cluster import BrokerDetail, Overview
from kafscale.console.schema.groups import Group
from kafscale.console.schema.topics import Topic
from kafscale.errors import ResourceNotFoundError
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

LOOK_SECONDS: Final = 2.0
LIST_SECONDS: Final = 10.0
"""How old the lists of topics and groups may be while somebody looks at them."""
ATTENTION_SECONDS: Final = 60.0
"""How long after the last question somebody still counts as being there."""
ETCD_SECONDS: Final = 30.0
PAUSE_SECONDS_MAX: Final = 30.0
COST_SHARE: Final = 0.1
"""How much of a core the looks may take."""
PARTITIONS_TOLD_MAX: Final = 1_000


class Watch:
    """Looks at a cluster again and again, and remembers for a while what it has seen."""

    def __init__(
        self,
        reach: Reach,
        *,
        look_seconds: float = LOOK_SECONDS,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reach = reach
        self._look_seconds = look_seconds
        self._timer = timer
        self._lookout = Lookout(reach)
        self._remembered: Remembered | None = None
        self._subscribers = Subscribers()
        self._looking = asyncio.Lock()
        self._listings_begun = 0
        self._asked = self._listed = float("-inf")
        self._members: MetadataLook | None = unasked(reach.config.etcd)
        self._told: Told | None = None

    # --- what was seen ------------------------------------------------------------------------

    @property
    def overview(self) -> Overview | None:
        """The cluster on one page; None before the first look."""
        told = self._read()
        return told.overview if told else None

    @property
    def overview_json(self) -> bytes | None:
        """The same as it is sent, encoded once for all who ask."""
        told = self._read()
        return told.overview_json if told else None

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics, by name."""
        told = self._read()
        return told.topics if told else {}

    @property
    def groups(self) -> Mapping[str, Group]:
        """All groups, by name."""
        told = self._read()
        return told.groups if told else {}

    @property
    def as_of_ms(self) -> int:
        return self._remembered.look.at_ms if self._remembered else 0

    def broker(self, broker_id: int) -> BrokerDetail:
        """A broker that is there, or was lately."""
        self._read()
        seen = self._remembered
        for each in seen.brokers if seen else ():
            if seen is not None and each.broker.id == broker_id:
                return BrokerDetail(
                    broker=views.broker(each, seen.rates),
                    partitions=views.partitions(each.broker, PARTITIONS_TOLD_MAX),
                    partition_total=len(each.broker.partitions),
                    throughput=seen.broker_throughput(broker_id),
                )
        known = ", ".join(str(each.broker.id) for each in seen.brokers) if seen else ""
        raise ResourceNotFoundError(
            f"there is no broker {broker_id}; the brokers are: {known or 'none'}"
        )

    def topic_throughput(self, name: str) -> list[Series]:
        """`produce` and `fetch` of a topic, in bytes per second."""
        return self._remembered.topic_throughput(name) if self._remembered else []

    def broker_throughput(self, broker_id: int) -> list[Series]:
        return self._remembered.broker_throughput(broker_id) if self._remembered else []

    def lag_history(self, group: str) -> list[Series]:
        """How far a group was behind, one line a topic."""
        return self._remembered.lag_history(group) if self._remembered else []

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[AsyncIterator[Overview]]:
        """What is seen from now on, look by look; who is slow misses looks, and is never behind."""
        with self._subscribers.subscribe(self.overview) as news:
            yield news

    # --- looking ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look for ever; cancel it to stop."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._look_for_ever())
            tasks.create_task(self._look_at_etcd_for_ever())

    async def look(self) -> None:
        """Look now, topics and groups included: what has just been changed is seen by then."""
        await self._look(with_listing=True)

    async def _look(self, *, with_listing: bool) -> None:
        begun_before = self._listings_begun
        async with self._looking:
            # Several may have waited for a look to end: one that began since is enough for all.
            if with_listing and self._listings_begun > begun_before:
                return
            if with_listing:
                self._listings_begun += 1
                self._listed = self._timer()
            look = await self._lookout.look(with_listing=with_listing)
            if self._remembered is None:
                self._remembered = Remembered(look)
            else:
                self._remembered.take(look)
            self._tell()

    async def _look_for_ever(self) -> None:
        while True:
            began, spent = self._timer(), time.thread_time()
            try:
                await self._look(with_listing=self._is_listing_due())
            except Exception:
                log.exception("look failed")
            await asyncio.sleep(
                pause_seconds(self._look_seconds, self._timer() - began, time.thread_time() - spent)
            )

    async def _look_at_etcd_for_ever(self) -> None:
        """Apart from all else, so that nothing waits for a member that hangs."""
        while self._members is not None:
            try:
                self._members = await etcd_look(self._reach.config.etcd)
            except Exception:
                log.exception("look at etcd failed")
            await asyncio.sleep(ETCD_SECONDS)

    def _is_listing_due(self) -> bool:
        now = self._timer()
        is_attended = len(self._subscribers) > 0 or now - self._asked < ATTENTION_SECONDS
        is_old = now - self._listed >= LIST_SECONDS
        return self._remembered is None or (is_attended and is_old)

    def _tell(self) -> None:
        assert self._remembered is not None
        seen = overview(
            self._remembered,
            metadata_look(self._members, self._remembered.look),
            place=self._reach.place,
            is_bucket=bool(self._reach.config.s3.bucket),
        )
        self._told = Told(self._remembered, seen)
        self._subscribers.tell(seen)

    def _read(self) -> Told | None:
        """What there is to be told, to somebody who is there to see it."""
        self._asked = self._timer()
        return self._told


def pause_seconds(look_seconds: float, took_seconds: float, spent_seconds: float) -> float:
    """How long to rest after a look that took so long, and so much of a core.

    >>> pause_seconds(2.0, took_seconds=0.1, spent_seconds=0.05)
    2.0
    >>> pause_seconds(2.0, took_seconds=0.9, spent_seconds=0.5)
    5.0
    >>> pause_seconds(2.0, took_seconds=4.0, spent_seconds=0.05)
    4.0
    """
    wanted = max(look_seconds, took_seconds, spent_seconds / COST_SHARE)
    return max(look_seconds, min(wanted, PAUSE_SECONDS_MAX))
