"""Loads transactional ids as the last owner of their shards left them in the store.

Invariant: a damaged record is logged and left in the store; it affects no other transactional id.
Reading yields to other tasks.
"""

import asyncio
from collections.abc import Collection
from typing import Final

from kafscale.errors import DamagedObjectError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.schema.transaction_codec import decode_transaction
from kafscale.metadata.store.base import MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.transactions.model import TransactionRecord

logger = get_logger(__name__)

ENTRIES_AT_ONCE: Final = 500
"""How many records are decoded before the event loop runs other tasks: a few milliseconds."""


async def read(store: MetadataStore, shards: Collection[int]) -> dict[int, list[TransactionRecord]]:
    """The transactional ids of these shards, by shard."""
    loaded: dict[int, list[TransactionRecord]] = {shard: [] for shard in shards}
    snapshot = await store.range(keys.TRANSACTIONS)
    for count, entry in enumerate(snapshot.entries, start=1):
        key = keys.parse(entry.key)
        if not isinstance(key, keys.TransactionalIdKey):
            logger.warning("unknown transaction key ignored", key=entry.key)
        elif (shard := shard_of(key.transactional_id)) in loaded:
            try:
                loaded[shard].append(decode_transaction(entry))
            except DamagedObjectError as error:
                logger.error("transaction record damaged", key=error.key, reason=error.reason)
        if count % ENTRIES_AT_ONCE == 0:
            await asyncio.sleep(0)
    return loaded
