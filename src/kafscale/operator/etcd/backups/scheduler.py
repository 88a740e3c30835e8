"""Keeps the snapshots of one cluster: takes them when they are due, and says how that goes.

The laws: `keep` returns soon, whatever becomes of the bucket or of etcd, because whoever calls it
has a cluster to look after; what takes longer goes on beside it. Nothing is remembered that the
bucket does not tell: an operator that takes over goes on where the other ended. Whatever goes wrong
shows in the conditions, in the figures and in the log, and is tried again.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from kafscale.admin.etcd.backups.source_selection import Connect, take_from_any
from kafscale.admin.etcd.backups.store import Snapshots, StoredSnapshot
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.protobuf import format_time
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import SnapshotMetrics
from kafscale.operator.conditions import Condition
from kafscale.operator.etcd.backups.conditions import SnapshotView, conditions
from kafscale.operator.etcd.backups.schedule import Failures, is_due, is_retry_due
from kafscale.operator.spec.cluster import SnapshotsSpec

LOOK_MS: Final = 300_000
"""How often it is made sure, between two snapshots, that the bucket can be used and has them."""

PATIENCE_S: Final = 5.0
"""How long a step may take; a snapshot of some ten MiB is done by then."""

log = get_logger(__name__)


class SnapshotState(msgspec.Struct, frozen=True, kw_only=True):
    """How the backups of a cluster are."""

    last_time: str = ""
    """When the newest was taken; empty where there is none."""
    last_key: str = ""
    size_bytes: int = 0
    failures: int = 0
    """How many attempts in a row failed."""
    conditions: list[Condition] = []


class SnapshotKeeper:
    """One cluster's; to be made anew when its spec or the way to its etcd changes."""

    def __init__(
        self,
        snapshots: Snapshots,
        spec: SnapshotsSpec,
        settings: Etcd,
        figures: SnapshotMetrics,
        *,
        random: Random,
        timer: Callable[[], float],
        connect: Connect = Maintenance,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`timer` tells seconds, for durations."""
        self._snapshots = snapshots
        self._spec = spec
        self._settings = settings
        self._figures = figures
        self._random = random
        self._timer = timer
        self._connect = connect
        self._patience_s = patience_s
        self._interval_ms = spec.interval_seconds * 1000
        self._looked_at_ms: int | None = None
        self._newest: StoredSnapshot | None = None
        self._access_failure: str | None = None
        self._failures = Failures()
        self._jitter = 0.0
        self._round: asyncio.Task[None] | None = None

    async def keep(self, now_ms: int) -> SnapshotState:
        """One step: do what is to be done, or let it go on, and say how things are."""
        if self._round is None and self._is_time(now_ms):
            self._round = asyncio.create_task(self._go_round(now_ms), name="snapshot of etcd")
        if self._round is not None:
            await asyncio.wait({self._round}, timeout=self._patience_s)
            if self._round.done():
                self._round = None
        return self._state(now_ms)

    async def close(self) -> None:
        """Give up what is under way; it will not count."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.wait({self._round})
            self._round = None

    def _is_time(self, now_ms: int) -> bool:
        if not is_retry_due(now_ms, self._interval_ms, self._failures, self._jitter):
            return False
        is_look_due = self._looked_at_ms is None or now_ms - self._looked_at_ms >= LOOK_MS
        return is_look_due or bool(self._failures.count) or self._is_due(now_ms)

    def _is_due(self, now_ms: int) -> bool:
        newest_at_ms = self._newest.taken_at_ms if self._newest else None
        return is_due(now_ms, newest_at_ms, self._interval_ms, self._failures, self._jitter)

    async def _go_round(self, now_ms: int) -> None:
        """Look into the bucket, and take a snapshot if it is time for one."""
        try:
            await self._look(now_ms)
            if self._is_due(now_ms):
                await self._take()
        except KafscaleError as error:
            self._fail(now_ms, str(error))
        except Exception as error:
            # Not even a mistake of ours may keep a cluster from being looked after.
            log.exception("snapshot failed for an unknown reason", prefix=self._snapshots.prefix)
            self._fail(now_ms, f"{type(error).__name__}: {error}")
        else:
            self._failures = Failures()
            self._figures.succeeded = True

    async def _look(self, now_ms: int) -> None:
        try:
            await self._snapshots.check_access()
            self._newest = await self._snapshots.newest()
        except KafscaleError as error:
            self._access_failure = str(error)
            self._figures.is_accessible = False
            raise
        self._looked_at_ms = now_ms
        self._access_failure = ""
        self._figures.is_accessible = True
        self._tell()

    async def _take(self) -> None:
        began = self._timer()
        self._newest = await take_from_any(self._snapshots, self._settings, self._connect)
        self._figures.duration_seconds = self._timer() - began
        self._tell()
        log.info(
            "snapshot of etcd taken",
            key=self._newest.key,
            size_bytes=self._newest.size_bytes,
            seconds=round(self._figures.duration_seconds, 3),
        )
        deleted = await self._snapshots.prune(self._spec.retain)
        if deleted:
            log.info("old snapshots of etcd deleted", count=len(deleted), first=deleted[0])

    def _fail(self, now_ms: int, reason: str) -> None:
        log.warning("no snapshot of etcd", prefix=self._snapshots.prefix, reason=reason)
        self._failures = self._failures.another(now_ms, reason)
        self._jitter = self._random.random()
        self._figures.fail()

    def _tell(self) -> None:
        self._figures.newest_at_ms = self._newest.taken_at_ms if self._newest else None
        self._figures.size_bytes = self._newest.size_bytes if self._newest else 0

    def _state(self, now_ms: int) -> SnapshotState:
        newest = self._newest
        view = SnapshotView(
            now_ms=now_ms,
            stale_after_ms=self._spec.stale_after_seconds * 1000,
            is_listed=self._looked_at_ms is not None,
            newest_at_ms=newest.taken_at_ms if newest else None,
            access_failure=self._access_failure,
            failures=self._failures,
        )
        return SnapshotState(
            last_time=format_time(newest.taken_at_ms) if newest else "",
            last_key=newest.key if newest else "",
            size_bytes=newest.size_bytes if newest else 0,
            failures=self._failures.count,
            conditions=conditions(view),
        )
