"""What a WAL object holds, from its last bytes alone."""

from kafscale.storage import wal
from kafscale.storage.objects.base import ObjectInfo, ObjectStore


async def read_table(store: ObjectStore, item: ObjectInfo) -> list[wal.Range]:
    """The ranges of a WAL object; only their table is looked at, not what it covers."""
    length = min(wal.TAIL_BYTES_HINT, item.size_bytes)
    while True:
        suffix = await store.get_suffix(item.key, length)
        found = wal.decode_footer(item.key, suffix, item.size_bytes)
        if not isinstance(found, int):
            return found
        length = found
