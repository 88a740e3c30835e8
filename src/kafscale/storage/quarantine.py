"""Quarantine: copies of objects that are damaged, or that hold other records than expected.

Invariant: an object that may hold acknowledged records is copied here before it is overwritten or
deleted. Kafscale never reads or deletes these copies: `kafscale segment inspect` shows them, and
the user decides.
"""

from kafscale.errors import ObjectExistsError
from kafscale.observability.logging import get_logger
from kafscale.records.checksum import Buffer, crc32c
from kafscale.storage.formats import object_keys
from kafscale.storage.objects.store import ObjectStore

logger = get_logger(__name__)


async def keep_copy(
    store: ObjectStore, namespace: str, key: str, data: Buffer, reason: str
) -> None:
    """Copy an object that was read; the same content is copied once."""
    copy_key = object_keys.quarantine_key(namespace, key, crc32c(data))
    try:
        await store.put(copy_key, [data])
    except ObjectExistsError:
        return
    logger.error("object kept in quarantine", key=key, copy=copy_key, reason=reason)
