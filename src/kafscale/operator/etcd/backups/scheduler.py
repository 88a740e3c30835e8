"""Takes the snapshots of one cluster when they are due, and reports their state.

Invariants:

* `reconcile` returns soon, even if the bucket or etcd hangs: the work continues in a task, so that
  the cluster's reconciler is not blocked.
* All state is in the bucket: a new operator continues where the former one ended.
* Every failure is visible in conditions, metrics and the log, and is retried.
"""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

import msgspec

from kafscale.admin.etcd.backups.listing import Connect, take_from_any
from kafscale.admin.etcd.backups.store import SnapshotStore, StoredSnapshot
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.metadata.schema.protobuf import format_time
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.observability.logging import get_logger
from kafscale.observability.metrics.operator import SnapshotMetrics
from kafscale.operator.etcd.backups.schedule import (
    Failures,
    SnapshotView,
    conditions,
    is_due,
    is_retry_due,
)
from kafscale.operator.spec.cluster import SnapshotsSpec
from kafscale.operator.spec.status import Condition

CHECK_INTERVAL_MS: Final = 300_000
"""How often the bucket is checked between two snapshots."""

WAIT_SECONDS: Final = 5.0
"""How long a step waits for the task; enough for a snapshot of some ten MiB."""

logger = get_logger(__name__)


class SnapshotState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a cluster's backups."""

    last_time: str = ""
    """When the newest was taken; empty if there is none."""
    last_key: str = ""
    size_bytes: int = 0
    failures: int = 0
    """Consecutive failed attempts."""
    conditions: list[Condition] = []


class SnapshotScheduler:
    """The scheduler of one cluster; replaced when its spec or its etcd settings change."""

    def __init__(
        self,
        snapshots: SnapshotStore,
        spec: SnapshotsSpec,
        settings: Etcd,
        metrics: SnapshotMetrics,
        *,
        random: Random,
        timer: Callable[[], float],
        connect: Connect = Maintenance,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`timer` is in seconds and measures durations."""
        self._snapshots = snapshots
        self._spec = spec
        self._settings = settings
        self._metrics = metrics
        self._random = random
        self._timer = timer
        self._connect = connect
        self._wait_seconds = wait_seconds
        self._interval_ms = spec.interval_seconds * 1000
        self._checked_at_ms: int | None = None
        self._newest: StoredSnapshot | None = None
        self._access_failure: str | None = None
        self._failures = Failures()
        self._jitter = 0.0
        self._task: asyncio.Task[None] | None = None

    async def reconcile(self, now_ms: int) -> SnapshotState:
        """Start or continue what is due; return the current state."""
        if self._task is None and self._should_run(now_ms):
            self._task = asyncio.create_task(self._run(now_ms), name="snapshot of etcd")
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=self._wait_seconds)
            if self._task.done():
                self._task = None
        return self._state(now_ms)

    async def close(self) -> None:
        """Cancel the running task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    def _should_run(self, now_ms: int) -> bool:
        if not is_retry_due(now_ms, self._interval_ms, self._failures, self._jitter):
            return False
        is_check_due = (
            self._checked_at_ms is None or now_ms - self._checked_at_ms >= CHECK_INTERVAL_MS
        )
        return is_check_due or bool(self._failures.count) or self._is_due(now_ms)

    def _is_due(self, now_ms: int) -> bool:
        newest_at_ms = self._newest.taken_at_ms if self._newest else None
        return is_due(now_ms, newest_at_ms, self._interval_ms, self._failures, self._jitter)

    async def _run(self, now_ms: int) -> None:
        """Check the bucket, and take a snapshot if it is due."""
        try:
            await self._check_bucket(now_ms)
            if self._is_due(now_ms):
                await self._take()
        except KafscaleError as error:
            self._fail(now_ms, str(error))
        except Exception as error:
            # The boundary: a bug here must not stop the cluster's reconciler.
            logger.exception("etcd snapshot crashed", prefix=self._snapshots.prefix)
            self._fail(now_ms, f"{type(error).__name__}: {error}")
        else:
            self._failures = Failures()
            self._metrics.succeeded = True

    async def _check_bucket(self, now_ms: int) -> None:
        try:
            await self._snapshots.check_access()
            self._newest = await self._snapshots.newest()
        except KafscaleError as error:
            self._access_failure = str(error)
            self._metrics.is_accessible = False
            raise
        self._checked_at_ms = now_ms
        self._access_failure = ""
        self._metrics.is_accessible = True
        self._update_metrics()

    async def _take(self) -> None:
        started = self._timer()
        self._newest = await take_from_any(self._snapshots, self._settings, self._connect)
        self._metrics.duration_seconds = self._timer() - started
        self._update_metrics()
        logger.info(
            "etcd snapshot taken",
            key=self._newest.key,
            size_bytes=self._newest.size_bytes,
            seconds=round(self._metrics.duration_seconds, 3),
        )
        deleted = await self._snapshots.prune(self._spec.retain)
        if deleted:
            logger.info("old etcd snapshots deleted", count=len(deleted), first=deleted[0])

    def _fail(self, now_ms: int, reason: str) -> None:
        logger.warning("etcd snapshot failed", prefix=self._snapshots.prefix, reason=reason)
        self._failures = self._failures.another(now_ms, reason)
        self._jitter = self._random.random()
        self._metrics.fail()

    def _update_metrics(self) -> None:
        self._metrics.newest_at_ms = self._newest.taken_at_ms if self._newest else None
        self._metrics.size_bytes = self._newest.size_bytes if self._newest else 0

    def _state(self, now_ms: int) -> SnapshotState:
        newest = self._newest
        view = SnapshotView(
            now_ms=now_ms,
            stale_after_ms=self._spec.stale_after_seconds * 1000,
            is_bucket_checked=self._checked_at_ms is not None,
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
