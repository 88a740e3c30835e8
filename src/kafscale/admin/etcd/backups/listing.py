"""What is done with snapshots in a bucket, and told about them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from kafscale.admin.etcd.backups.location import Place, opened
from kafscale.admin.etcd.backups.source_selection import take_from_any
from kafscale.admin.etcd.backups.store import Snapshots, StoredSnapshot
from kafscale.config import Config
from kafscale.errors import DamagedObjectError, KafscaleError
from kafscale.metadata.cluster.restore_marker import mark_restored
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.metadata.store.etcd.maintenance import Maintenance
from kafscale.text.formatting import clock, iso_time

Progress = Callable[[int, int], None]

READS_MAX: Final = 16
"""How many descriptions are read at a time."""


async def take(config: Config, place: Place, retain: int, progress: Progress) -> dict[str, Any]:
    """Take one, and keep only the newest ones if so many are named."""
    async with opened(config, place) as snapshots:
        taken = await take_from_any(snapshots, config.etcd, Maintenance, progress)
        deleted = await snapshots.prune(retain) if retain else ()
        told = await _told(snapshots, taken)
        return told | {"deleted": list(deleted)}


async def listed(
    config: Config, place: Place, *, verify: bool, progress: Progress
) -> list[dict[str, Any]]:
    """All that count, the oldest first, with what is known about each."""
    async with opened(config, place) as snapshots:
        found = await snapshots.list()
        if not verify:
            return await _described(snapshots, found)
        done_bytes, all_bytes = 0, sum(each.size_bytes for each in found)
        told = []
        for each in found:
            progress(done_bytes, all_bytes)
            told.append(await _verified(snapshots, each))
            done_bytes += each.size_bytes
        return told


async def mark(config: Config, snapshot: str, taken_at_ms: int) -> None:
    """Mark the store as restored from a snapshot."""
    store = EtcdStore(config.etcd)
    try:
        await store.check()
        await mark_restored(
            store, snapshot=snapshot, taken_at_ms=taken_at_ms, restored_at_ms=clock()
        )
    finally:
        await store.close()


async def _told(snapshots: Snapshots, found: StoredSnapshot) -> dict[str, Any]:
    told = _listed(found)
    try:
        description = await snapshots.describe(found.key)
    except DamagedObjectError as error:
        return told | {"verified": "no", "problem": error.reason}
    except KafscaleError as error:
        return told | {"verified": "no", "problem": str(error)}
    told |= {
        "sha256": description.sha256,
        "etcdVersion": description.etcd_version,
        "clusterId": description.cluster_id,
        "takenAt": description.taken_at,
    }
    if description.size_bytes != found.size_bytes:
        problem = f"it has {found.size_bytes} bytes, where {description.size_bytes} were written"
        return told | {"verified": "no", "problem": problem}
    return told | {"verified": "size"}


async def _described(snapshots: Snapshots, found: Sequence[StoredSnapshot]) -> list[dict[str, Any]]:
    slots = asyncio.Semaphore(READS_MAX)

    async def describe(each: StoredSnapshot) -> dict[str, Any]:
        async with slots:
            return await _told(snapshots, each)

    return list(await asyncio.gather(*map(describe, found)))


async def _verified(snapshots: Snapshots, found: StoredSnapshot) -> dict[str, Any]:
    told = await _told(snapshots, found)
    if "problem" in told:
        return told
    try:
        await snapshots.verify(found.key)
    except DamagedObjectError as error:
        return told | {"verified": "no", "problem": error.reason}
    return told | {"verified": "checksum"}


def _listed(found: StoredSnapshot) -> dict[str, Any]:
    return {
        "key": found.key,
        "takenAt": iso_time(found.taken_at_ms),
        "ageSeconds": max(clock() - found.taken_at_ms, 0) // 1000,
        "sizeBytes": found.size_bytes,
        "revision": found.name.revision,
    }
