"""The mark of a store that was restored from a snapshot, and so knows less than the bucket does.

    /kafscale/restored          JSON: which snapshot, taken and restored when
    /kafscale/restored/settled  how many restorations have been settled, as decimal digits

The laws: a store that `kafscale etcd restore` has made tells of it by itself, from its first answer
on, because its revision was made to leap: no broker can be faster than the mark. One that was
restored in another way is marked by `mark_restored`. Either way it is `restored` until `settle` has
said, once, that metadata and bucket agree again. How they come to agree is left to the controller.
"""

from typing import Final

import msgspec

from kafscale.errors import DamagedObjectError
from kafscale.metadata.cluster.id_allocator import value_of
from kafscale.metadata.schema.timestamps import format_time
from kafscale.metadata.store.base import Compare, Delete, Entry, MetadataStore, Operation, Put

MARK: Final = "/kafscale/restored"
SETTLED: Final = "/kafscale/restored/settled"

REVISION_LEAP: Final = 1 << 40
"""What restoring adds to the revision of a snapshot. A store with a thousand commits a second would
take 34 years to come as far by itself, and has room for eight million leaps."""


class Restored(msgspec.Struct, frozen=True):
    """A restoration that is not settled yet."""

    snapshot: str = ""
    """The key of the snapshot; empty where only the revision tells of the restoration."""
    taken_at: str = ""
    restored_at: str = ""


class Unsettled(msgspec.Struct, frozen=True):
    """A restoration, and what the store had to say of it: what `settle` wants back."""

    restored: Restored
    mark: Entry | None
    settled: Entry | None
    restoration_count: int


async def mark_restored(
    store: MetadataStore, *, snapshot: str, taken_at_ms: int, restored_at_ms: int
) -> None:
    """Mark a store that was restored by other means, before any broker uses it."""
    restored = Restored(snapshot, format_time(taken_at_ms), format_time(restored_at_ms))
    await store.commit([], [Put(MARK, msgspec.json.encode(restored))])


async def find_restored(store: MetadataStore) -> Unsettled | None:
    """The restoration that is to be settled before anything else, if there is one."""
    found = await store.range(MARK)
    entries = {entry.key: entry for entry in found.entries}
    mark, settled = entries.get(MARK), entries.get(SETTLED)
    restoration_count = found.revision // REVISION_LEAP
    if mark is None and restoration_count <= (value_of(settled) if settled else 0):
        return None
    return Unsettled(_restored(mark), mark, settled, restoration_count)


async def settle(store: MetadataStore, unsettled: Unsettled) -> bool:
    """Say that it is settled; false if the store was marked again, or settled by others, since."""
    compares = [
        Compare(key=key, mod_revision=entry.mod_revision if entry else 0)
        for key, entry in ((MARK, unsettled.mark), (SETTLED, unsettled.settled))
    ]
    operations: list[Operation] = [Put(SETTLED, str(unsettled.restoration_count).encode())]
    if unsettled.mark:
        operations.append(Delete(MARK))
    return (await store.commit(compares, operations)).succeeded


def _restored(mark: Entry | None) -> Restored:
    if mark is None:
        return Restored()
    try:
        return msgspec.json.decode(mark.value, type=Restored)
    except msgspec.MsgspecError as error:
        raise DamagedObjectError(MARK, f"not the mark of a restoration: {error}") from error
