"""What a WAL object holds, from its last bytes alone."""

from kafscale.storage.formats import wal_object
from kafscale.storage.objects.store import ObjectInfo, ObjectStore


async def read_table(store: ObjectStore, item: ObjectInfo) -> list[wal_object.Range]:
    """The ranges of a WAL object; only their table is looked at, not what it covers."""
    length = min(wal_object.TAIL_BYTES_HINT, item.size_bytes)
    while True:
        suffix = await store.get_suffix(item.key, length)
        found = wal_object.decode_footer(item.key, suffix, item.size_bytes)
        if not isinstance(found, int):
            return found
        length = found
