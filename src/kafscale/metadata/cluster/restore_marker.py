"""Marks a metadata store that was restored from a snapshot and may be older than the bucket.

    /kafscale/restored          JSON: which snapshot, when it was taken and when it was restored
    /kafscale/restored/settled  the number of completed restores, as decimal digits

`kafscale etcd restore` bumps the revision of the store by `REVISION_BUMP`, so a restored store is
recognised from its first response on, before any broker can write to it. `mark_restored` marks a
store that was restored by other means. Either way the restore is pending until the controller has
reconciled metadata and bucket and called `complete_restore`.
"""

from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.id_allocator import counter_value
from kafscale.metadata.schema.protobuf import format_time
from kafscale.metadata.store.base import Compare, Delete, Entry, MetadataStore, Operation, Put
from kafscale.text.json import DECODE_ERRORS

MARKER_KEY: Final = "/kafscale/restored"
COMPLETED_KEY: Final = "/kafscale/restored/settled"

REVISION_BUMP: Final = 1 << 40
"""Added to the revision of a snapshot by a restore. A store with a thousand commits per second
would need 34 years to reach it; an int64 has space for eight million restores."""


class RestoreInfo(msgspec.Struct, frozen=True):
    """The content of the marker."""

    snapshot: str = ""
    """The key of the snapshot; empty if only the revision reveals the restore."""
    taken_at: str = ""
    restored_at: str = ""
    cluster_id: str = ""
    """Another cluster, whose records in the bucket this cluster takes over."""


class PendingRestore(msgspec.Struct, frozen=True):
    """A restore that is not completed, with the entries that `complete_restore` compares."""

    info: RestoreInfo
    marker: Entry | None
    completed: Entry | None
    restore_count: int


def restore_mark(
    *, restored_at_ms: int, snapshot: str = "", taken_at_ms: int = 0, cluster_id: str = ""
) -> Put:
    """The operation that marks a store as restored; without a snapshot, it has lost everything."""
    info = RestoreInfo(snapshot, format_time(taken_at_ms), format_time(restored_at_ms), cluster_id)
    return Put(MARKER_KEY, msgspec.json.encode(info))


async def mark_restored(
    store: MetadataStore,
    *,
    restored_at_ms: int,
    snapshot: str = "",
    taken_at_ms: int = 0,
    cluster_id: str = "",
) -> None:
    """Mark a store that was restored by other means, before any broker uses it."""
    mark = restore_mark(
        restored_at_ms=restored_at_ms,
        snapshot=snapshot,
        taken_at_ms=taken_at_ms,
        cluster_id=cluster_id,
    )
    await store.commit([], [mark])


async def find_pending_restore(store: MetadataStore) -> PendingRestore | None:
    """Return the restore that has to be completed before anything else, or None."""
    snapshot = await store.range(MARKER_KEY)
    entries = {entry.key: entry for entry in snapshot.entries}
    marker, completed = entries.get(MARKER_KEY), entries.get(COMPLETED_KEY)
    restore_count = snapshot.revision // REVISION_BUMP
    if marker is None and restore_count <= (counter_value(completed) if completed else 0):
        return None
    return PendingRestore(_decode_info(marker), marker, completed, restore_count)


async def complete_restore(store: MetadataStore, pending: PendingRestore) -> bool:
    """Complete a restore; false if the store was marked or completed by another since."""
    compares = [
        Compare(key=key, mod_revision=entry.mod_revision if entry else 0)
        for key, entry in ((MARKER_KEY, pending.marker), (COMPLETED_KEY, pending.completed))
    ]
    operations: list[Operation] = [Put(COMPLETED_KEY, str(pending.restore_count).encode())]
    if pending.marker:
        operations.append(Delete(MARKER_KEY))
    return (await store.commit(compares, operations)).succeeded


def _decode_info(marker: Entry | None) -> RestoreInfo:
    if marker is None:
        return RestoreInfo()
    try:
        return msgspec.json.decode(marker.value, type=RestoreInfo)
    except DECODE_ERRORS as error:
        raise DamagedObjectError(MARKER_KEY, f"not a restore marker: {error}") from error
