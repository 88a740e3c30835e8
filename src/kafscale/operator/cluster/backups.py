"""The backups of every cluster's metadata: a keeper of snapshots for each, made from its spec."""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

import msgspec

from kafscale.admin.etcd.backups import object_keys as snapshot_keys
from kafscale.admin.etcd.backups.store import Snapshots
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import KafscaleError
from kafscale.observability.metrics.operator import OperatorMetrics, SnapshotMetrics
from kafscale.operator.cluster.bucket import BucketKeeper
from kafscale.operator.conditions import Condition, bad
from kafscale.operator.etcd.backups.conditions import ACCESS, SNAPSHOT, disabled
from kafscale.operator.etcd.backups.scheduler import SnapshotKeeper, SnapshotState
from kafscale.operator.spec.cluster import Cluster, SnapshotsSpec
from kafscale.operator.spec.status import SnapshotStatus
from kafscale.storage.objects.conditional_put_probe import probe_access
from kafscale.storage.objects.layers.retrying import RetryingObjectStore
from kafscale.storage.objects.s3.bucket_admin import create_bucket
from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore
from kafscale.storage.objects.store import ObjectStore

RETRIES_MAX: Final = 3


class Backup(msgspec.Struct, frozen=True):
    """How the backups of a cluster are."""

    status: SnapshotStatus | None
    conditions: list[Condition]


class _Kept(msgspec.Struct, frozen=True):
    wanted: tuple[SnapshotsSpec, Etcd, S3Bucket]
    keeper: SnapshotKeeper
    store: ObjectStore


class BackupKeeper:
    """Has snapshots taken of the etcds of clusters."""

    def __init__(
        self,
        buckets: BucketKeeper,
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
        self._kept: dict[tuple[str, str], _Kept] = {}

    async def keep(self, cluster: Cluster, settings: Etcd) -> Backup:
        """Take a snapshot if it is time for one; how the backups are."""
        figures = self._metrics.cluster(cluster.namespace, cluster.name)
        if not cluster.spec.etcd.snapshots.enabled:
            await self.forget(cluster.namespace, cluster.name)
            figures.snapshots = None
            return Backup(None, disabled())
        figures.snapshots = figures.snapshots or SnapshotMetrics()
        try:
            keeper = await self._keeper(cluster, settings, figures.snapshots)
        except KafscaleError as error:
            figures.snapshots.is_accessible = False
            figures.snapshots.fail()
            reason = f"snapshots cannot be stored: {error}"
            conditions = [bad(ACCESS, "NoAccess", reason), bad(SNAPSHOT, "NoAccess", reason)]
            return Backup(_told_before(cluster), conditions)
        now_ms = self._clock()
        state = await keeper.keep(now_ms)
        newest_at_ms = figures.snapshots.newest_at_ms
        age_ms = now_ms - newest_at_ms if newest_at_ms is not None else None
        return Backup(_status(state, age_ms), state.conditions)

    async def newest_key(self, cluster: Cluster) -> str:
        """The newest snapshot that there is; raises `OperatingError` where there is none."""
        store = await self._store(await self._bucket(cluster))
        try:
            return await self._snapshots(cluster, store).find(snapshot_keys.LATEST)
        finally:
            await store.close()

    async def forget(self, namespace: str, name: str) -> None:
        """Let go of a cluster."""
        kept = self._kept.pop((namespace, name), None)
        if kept is not None:
            await kept.keeper.close()
            await kept.store.close()

    async def close(self) -> None:
        for namespace, name in list(self._kept):
            await self.forget(namespace, name)

    async def _keeper(
        self, cluster: Cluster, settings: Etcd, figures: SnapshotMetrics
    ) -> SnapshotKeeper:
        """The keeper of a cluster; another one when anything has changed that it was made from."""
        spec = cluster.spec.etcd.snapshots
        bucket = await self._bucket(cluster)
        wanted = (spec, settings, bucket)
        kept = self._kept.get((cluster.namespace, cluster.name))
        if kept is not None and kept.wanted == wanted:
            return kept.keeper
        await self.forget(cluster.namespace, cluster.name)
        store = await self._store(bucket)
        snapshots = self._snapshots(cluster, store)
        if spec.create_bucket:
            try:
                await probe_access(store, snapshots.prefix, partial(create_bucket, bucket))
            except BaseException:
                await store.close()
                raise
        keeper = SnapshotKeeper(
            snapshots, spec, settings, figures, random=self._random, timer=self._timer
        )
        self._kept[cluster.namespace, cluster.name] = _Kept(wanted, keeper, store)
        return keeper

    def _snapshots(self, cluster: Cluster, store: ObjectStore) -> Snapshots:
        prefix = cluster.spec.etcd.snapshots.prefix
        place = snapshot_keys.directory(prefix, cluster.namespace, cluster.name)
        return Snapshots(store, place, self._clock)

    async def _store(self, bucket: S3Bucket) -> ObjectStore:
        store = S3ObjectStore(bucket)
        await store.authenticate()
        return RetryingObjectStore(store, retries_max=RETRIES_MAX, random=self._random)

    async def _bucket(self, cluster: Cluster) -> S3Bucket:
        return await self._buckets.opened(cluster.namespace, cluster.spec.snapshots_s3)


def _told_before(cluster: Cluster) -> SnapshotStatus | None:
    """The newest snapshot that was known, while the bucket cannot be asked."""
    told = cluster.status.get("snapshot")
    return msgspec.convert(told, SnapshotStatus) if told else None


def _status(state: SnapshotState, age_ms: int | None) -> SnapshotStatus:
    return SnapshotStatus(
        last_time=state.last_time or None,
        last_key=state.last_key,
        size_bytes=state.size_bytes or None,
        age_seconds=None if age_ms is None else max(age_ms // 1000, 0),
        failures=state.failures,
    )
