"""Loads transactional ids as the last owner of their shards left them in the store.

Invariant: a damaged record is logged and left in the store; it affects no other transactional id.
Reading yields to other tasks.
"""

from collections.abc import AsyncIterator, Collection
from typing import Final

import msgspec

from kafscale.aio.pacer import Pacer
from kafscale.errors import DamagedObjectError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.schema.transaction_codec import decode_transaction
from kafscale.metadata.store.base import Entry, MetadataStore
from kafscale.observability.logging import get_logger
from kafscale.transactions.model import NO_PARTITIONS, TransactionRecord

logger = get_logger(__name__)

ENTRIES_PER_TURN: Final = 250
"""How many records are decoded before the event loop runs other tasks: a few milliseconds."""


async def read(
    store: MetadataStore, shards: Collection[int]
) -> AsyncIterator[tuple[int, TransactionRecord]]:
    """The transactional ids of these shards, each with its shard."""
    pacer = Pacer(ENTRIES_PER_TURN)
    snapshot = await store.range(keys.TRANSACTIONS)
    for entry in snapshot.entries:
        key = keys.parse(entry.key)
        if not isinstance(key, keys.TransactionalIdKey):
            logger.warning("unknown transaction key ignored", key=entry.key)
        elif (shard := shard_of(key.transactional_id)) in shards:
            record = _decoded(entry)
            if record is not None:
                yield shard, record
        await pacer.step()


def _decoded(entry: Entry) -> TransactionRecord | None:
    try:
        record = decode_transaction(entry)
    except DamagedObjectError as error:
        logger.error("transaction record damaged", key=error.key, reason=error.reason)
        return None
    if not record.partitions:
        return msgspec.structs.replace(record, partitions=NO_PARTITIONS)
    return record
