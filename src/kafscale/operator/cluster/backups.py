"""Reconciles the backups of clusters' metadata: one snapshot scheduler per cluster."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

import msgspec

from kafscale.admin.etcd.backups import snapshot_format as snapshot_keys
from kafscale.admin.etcd.backups.store import SnapshotStore
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.observability.metrics.operator import OperatorMetrics, SnapshotMetrics
from kafscale.operator.cluster.bucket import BucketReconciler
from kafscale.operator.etcd.backups.schedule import ACCESS, SNAPSHOT, disabled
from kafscale.operator.etcd.backups.scheduler import SnapshotScheduler, SnapshotState
from kafscale.operator.spec.cluster import Cluster, SnapshotsSpec
from kafscale.operator.spec.status import Condition, SnapshotStatus, bad
from kafscale.storage.objects.factory import probe_access
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.s3.bucket_admin import create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectStore

ATTEMPTS_MAX: Final = 3


class BackupState(msgspec.Struct, frozen=True):
    """The state of a cluster's backups."""

    status: SnapshotStatus | None
    conditions: list[Condition]


class _Running(msgspec.Struct, frozen=True):
    inputs: tuple[SnapshotsSpec, Etcd, S3Bucket]
    scheduler: SnapshotScheduler
    store: ObjectStore


class BackupReconciler:
    """Runs the snapshot schedulers of all clusters."""

    def __init__(
        self,
        buckets: BucketReconciler,
        metrics: OperatorMetrics,
        *,
        clock: Callable[[], int],
        timer: Callable[[], float],
        random: Random,
    ) -> None:
        """`clock` is in milliseconds, `timer` in seconds."""
        self._buckets = buckets
        self._metrics = metrics
        self._clock = clock
        self._timer = timer
        self._random = random
        self._running: dict[tuple[str, str], _Running] = {}

    async def reconcile(self, cluster: Cluster, settings: Etcd) -> BackupState:
        """Take a snapshot if one is due; return the state of the backups."""
        metrics = self._metrics.cluster(cluster.namespace, cluster.name)
        if not cluster.spec.etcd.snapshots.enabled:
            await self.forget(cluster.namespace, cluster.name)
            metrics.snapshots = None
            return BackupState(None, disabled())
        metrics.snapshots = metrics.snapshots or SnapshotMetrics()
        try:
            scheduler = await self._scheduler(cluster, settings, metrics.snapshots)
        except KafscaleError as error:
            metrics.snapshots.is_accessible = False
            metrics.snapshots.fail()
            reason = f"snapshots cannot be stored: {error}"
            conditions = [bad(ACCESS, "NoAccess", reason), bad(SNAPSHOT, "NoAccess", reason)]
            return BackupState(_previous_status(cluster), conditions)
        now_ms = self._clock()
        state = await scheduler.reconcile(now_ms)
        newest_at_ms = metrics.snapshots.newest_at_ms
        age_ms = now_ms - newest_at_ms if newest_at_ms is not None else None
        return BackupState(_status(state, age_ms), state.conditions)

    async def newest_key(self, cluster: Cluster) -> str:
        """The key of the newest snapshot; raises `OperatingError` if there is none."""
        store = await self._store(await self._bucket(cluster))
        try:
            return await self._snapshots(cluster, store).find(snapshot_keys.LATEST)
        finally:
            await store.close()

    async def forget(self, namespace: str, name: str) -> None:
        """Drop the state of a cluster."""
        running = self._running.pop((namespace, name), None)
        if running is not None:
            await running.scheduler.close()
            await running.store.close()

    async def close(self) -> None:
        for namespace, name in list(self._running):
            await self.forget(namespace, name)

    async def _scheduler(
        self, cluster: Cluster, settings: Etcd, metrics: SnapshotMetrics
    ) -> SnapshotScheduler:
        """The scheduler of a cluster; replaced when its inputs change."""
        spec = cluster.spec.etcd.snapshots
        bucket = await self._bucket(cluster)
        inputs = (spec, settings, bucket)
        running = self._running.get((cluster.namespace, cluster.name))
        if running is not None and running.inputs == inputs:
            return running.scheduler
        await self.forget(cluster.namespace, cluster.name)
        store = await self._store(bucket)
        snapshots = self._snapshots(cluster, store)
        if spec.create_bucket:
            try:
                await probe_access(store, snapshots.prefix, partial(create_bucket, bucket))
            except BaseException:
                await store.close()
                raise
        scheduler = SnapshotScheduler(
            snapshots, spec, settings, metrics, random=self._random, timer=self._timer
        )
        self._running[cluster.namespace, cluster.name] = _Running(inputs, scheduler, store)
        return scheduler

    def _snapshots(self, cluster: Cluster, store: ObjectStore) -> SnapshotStore:
        prefix = cluster.spec.etcd.snapshots.prefix
        directory = snapshot_keys.directory(prefix, cluster.namespace, cluster.name)
        return SnapshotStore(store, directory, self._clock)

    async def _store(self, bucket: S3Bucket) -> ObjectStore:
        store = S3ObjectStore(bucket)
        await store.authenticate()
        return RetryingObjectStore(store, attempts_max=ATTEMPTS_MAX, random=self._random)

    async def _bucket(self, cluster: Cluster) -> S3Bucket:
        return await self._buckets.bucket_config(cluster, cluster.spec.snapshots_s3)


def _previous_status(cluster: Cluster) -> SnapshotStatus | None:
    """The last known snapshot, while the bucket cannot be accessed."""
    previous = cluster.status.get("snapshot")
    return msgspec.convert(previous, SnapshotStatus) if previous else None


def _status(state: SnapshotState, age_ms: int | None) -> SnapshotStatus:
    return SnapshotStatus(
        last_time=state.last_time or None,
        last_key=state.last_key,
        size_bytes=state.size_bytes or None,
        age_seconds=None if age_ms is None else max(age_ms // 1000, 0),
        failures=state.failures,
    )
