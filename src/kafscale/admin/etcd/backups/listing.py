"""Takes and lists snapshots of etcd in a bucket, and marks a store as restored.

The bucket and the prefix come from options, which override settings. Snapshots always use the
standard storage class, whatever segments use.

A member without a leader may be far behind, and a learner is; neither is used. Followers are
preferred, to spare the leader; among followers, the one with the highest revision. If a member
fails midway, the next one is tried.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec
from msgspec import UNSET, UnsetType

from kafscale.admin.etcd.backups.store import (
    Progress,
    SnapshotSource,
    SnapshotStore,
    SourceError,
    StoredSnapshot,
)
from kafscale.aio.clock import clock, steady_clock
from kafscale.aio.gather import map_limited
from kafscale.config import Config
from kafscale.config.sections.etcd import Etcd
from kafscale.errors import DamagedObjectError, KafscaleError, StoreUnavailableError
from kafscale.metadata.cluster.restore_marker import mark_restored
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.etcd.maintenance import Maintenance, MemberStatus, statuses
from kafscale.metadata.store.sqlite.store import METADATA_FILE, SqliteStore
from kafscale.observability.logging import get_logger
from kafscale.storage.objects import factory
from kafscale.storage.objects.s3.bucket_config import STANDARD
from kafscale.text.formatting import format_time

READS_MAX: Final = 16
"""How many descriptions are read concurrently."""

PREFIX: Final = "etcd-snapshots"

logger = get_logger(__name__)


@dataclass(frozen=True)
class SnapshotLocation:
    """Where snapshots are; empty fields are taken from the settings."""

    bucket: str = ""
    prefix: str = ""
    region: str = ""
    endpoint: str = ""


class SnapshotInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot and its description; what is unset could not be read or does not apply."""

    key: str
    taken_at: str
    age_seconds: int
    size_bytes: int
    revision: int
    sha256: str | UnsetType = UNSET
    etcd_version: str | UnsetType = UNSET
    cluster_id: str | UnsetType = UNSET
    verified: str | UnsetType = UNSET
    """What was compared: `checksum`, `size`, or `no` if the snapshot is damaged."""
    problem: str | UnsetType = UNSET
    deleted: list[str] | UnsetType = UNSET
    """The keys that were deleted after taking this snapshot."""

    @property
    def is_damaged(self) -> bool:
        return self.problem is not UNSET


async def take_snapshot(
    config: Config, location: SnapshotLocation, retain: int, progress: Progress
) -> SnapshotInfo:
    """Take a snapshot; then keep only the `retain` newest ones, or all if it is 0."""
    async with open_snapshots(config, location) as snapshots:
        taken = await take_from_any(snapshots, config.etcd, Maintenance, progress)
        deleted = await snapshots.prune(retain) if retain else ()
        info = await _describe(snapshots, taken)
        return msgspec.structs.replace(info, deleted=list(deleted))


async def list_snapshots(
    config: Config, location: SnapshotLocation, *, verify: bool, progress: Progress
) -> list[SnapshotInfo]:
    """All complete snapshots, oldest first; `verify` reads them and compares checksums."""
    async with open_snapshots(config, location) as snapshots:
        stored = await snapshots.list()
        if not verify:
            return await _describe_all(snapshots, stored)
        done_bytes, all_bytes = 0, sum(each.size_bytes for each in stored)
        infos = []
        for each in stored:
            progress(done_bytes, all_bytes)
            infos.append(await _verify(snapshots, each))
            done_bytes += each.size_bytes
        return infos


async def mark_store_restored(
    config: Config, snapshot: str, taken_at_ms: int, cluster_id: str = ""
) -> None:
    """Mark the metadata store as restored, from a snapshot or from the bucket alone.

    `cluster_id` is another cluster, whose records in the bucket are to be taken over.
    """
    store: EtcdStore | SqliteStore
    if config.etcd.endpoints:
        store = EtcdStore(config.etcd)
    else:
        store = await SqliteStore.open(Path(config.broker.data_dir) / METADATA_FILE, steady_clock)
    try:
        if isinstance(store, EtcdStore):
            await store.check()
        await mark_restored(
            store,
            snapshot=snapshot,
            taken_at_ms=taken_at_ms,
            restored_at_ms=clock(),
            cluster_id=cluster_id,
        )
    finally:
        await store.close()


async def _describe(snapshots: SnapshotStore, stored: StoredSnapshot) -> SnapshotInfo:
    info = SnapshotInfo(
        key=stored.key,
        taken_at=format_time(stored.taken_at_ms),
        age_seconds=max(clock() - stored.taken_at_ms, 0) // 1000,
        size_bytes=stored.size_bytes,
        revision=stored.name.revision,
    )
    try:
        description = await snapshots.describe(stored.key)
    except DamagedObjectError as error:
        return _damaged(info, error.reason)
    except KafscaleError as error:
        return _damaged(info, str(error))
    info = msgspec.structs.replace(
        info,
        sha256=description.sha256,
        etcd_version=description.etcd_version,
        cluster_id=description.cluster_id,
        taken_at=description.taken_at,
    )
    if description.size_bytes != stored.size_bytes:
        return _damaged(
            info, f"it has {stored.size_bytes} bytes instead of {description.size_bytes}"
        )
    return msgspec.structs.replace(info, verified="size")


async def _describe_all(
    snapshots: SnapshotStore, stored: Sequence[StoredSnapshot]
) -> list[SnapshotInfo]:
    return await map_limited(partial(_describe, snapshots), stored, READS_MAX)


async def _verify(snapshots: SnapshotStore, stored: StoredSnapshot) -> SnapshotInfo:
    info = await _describe(snapshots, stored)
    if info.is_damaged:
        return info
    try:
        await snapshots.verify(stored.key)
    except DamagedObjectError as error:
        return _damaged(info, error.reason)
    return msgspec.structs.replace(info, verified="checksum")


def _damaged(info: SnapshotInfo, problem: str) -> SnapshotInfo:
    return msgspec.structs.replace(info, verified="no", problem=problem)


@asynccontextmanager
async def open_snapshots(
    config: Config, location: SnapshotLocation
) -> AsyncIterator[SnapshotStore]:
    """Open the snapshot store for the duration of the block."""
    if not (location.bucket or config.s3.bucket):
        raise KafscaleError("no bucket is set: use --bucket or KAFSCALE_S3_BUCKET")
    configured = factory.bucket(config)
    bucket = replace(
        configured,
        name=location.bucket or configured.name,
        region=location.region or configured.region,
        endpoint=location.endpoint or configured.endpoint,
        # What is configured is for the configured endpoint.
        path_style=None if location.endpoint else configured.path_style,
        storage_class=STANDARD,
    )
    async with factory.open_bucket(bucket, attempts_max=config.s3.attempts_max) as store:
        yield SnapshotStore(store, location.prefix or f"{PREFIX}/{config.s3.namespace}", clock)


class Connection(SnapshotSource, Protocol):
    """A connection to a member, open for the duration of a block."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


Connect = Callable[[str, Etcd], Connection]
"""Opens a connection to a member by its endpoint; `Maintenance` implements it."""


async def take_from_any(
    snapshots: SnapshotStore,
    settings: Etcd,
    connect: Connect,
    progress: Progress = lambda _done, _all: None,
) -> StoredSnapshot:
    """Take a snapshot from the best member that succeeds."""
    async with AsyncExitStack() as stack:
        members = {
            endpoint: await stack.enter_async_context(connect(endpoint, settings))
            for endpoint in settings.endpoints
        }
        by_endpoint = await statuses(members)
        failures = [f"{endpoint}: {why}" for endpoint, why in _unsuitable(by_endpoint)]
        for endpoint in rank_sources(by_endpoint):
            try:
                return await snapshots.take(members[endpoint], progress)
            except SourceError as error:
                logger.warning(
                    "snapshot from etcd member failed", endpoint=endpoint, reason=str(error)
                )
                failures.append(str(error))
    raise StoreUnavailableError("no etcd member returned a snapshot: " + "; ".join(failures))


def rank_sources(by_endpoint: dict[str, MemberStatus | KafscaleError]) -> Sequence[str]:
    """The endpoints of suitable members, best first."""
    suitable = [
        (status.is_leader, -status.revision, endpoint)
        for endpoint, status in by_endpoint.items()
        if isinstance(status, MemberStatus) and status.has_quorum_view
    ]
    return [endpoint for *_, endpoint in sorted(suitable)]


def _unsuitable(by_endpoint: dict[str, MemberStatus | KafscaleError]) -> list[tuple[str, str]]:
    reasons = []
    for endpoint, status in by_endpoint.items():
        if isinstance(status, KafscaleError):
            reasons.append((endpoint, str(status)))
        elif not status.leader_id:
            reasons.append((endpoint, "it has no leader"))
        elif status.is_learner:
            reasons.append((endpoint, "it is a learner"))
    return reasons
