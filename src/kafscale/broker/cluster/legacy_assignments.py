"""Taking in what was written before partitions had owners.

A data directory of a single broker from before there were assignments has topics, and records in
segments and in the WAL, but nobody owns them. The law: such partitions are never taken for new.
They are written down as owned by a life that is over, so that they are taken over like those of any
broker that died: its streams are fenced first, and everything in them is found again.
"""

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import OPERATIONS_MAX, MetadataStore, Put, absent
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


async def adopt(store: MetadataStore, catalog: Catalog, *, broker_id: int, now_ms: int) -> None:
    """Give owners to the partitions of a store that has topics, and no assignment at all."""
    if not catalog.topics or (await store.range(keys.ASSIGNMENTS)).entries:
        return
    # Leaders of old had their broker's epoch, so that those who follow must have later ones.
    epoch = await id_allocator.next_value(store, id_allocator.broker_epoch(str(broker_id)))
    orphans = [
        Assignment(
            topic=topic.name,
            partition=number,
            broker_id=broker_id,
            broker_epoch=epoch,
            leader_epoch=epoch,
            fully_rolled=False,
            assigned_ms=now_ms,
        )
        for topic in catalog.topics.values()
        for number in range(topic.partitions)
    ]
    puts = [
        Put(keys.assignment(orphan.topic, orphan.partition), encode_assignment(orphan))
        for orphan in orphans
    ]
    for first in range(0, len(puts), OPERATIONS_MAX):
        some = puts[first : first + OPERATIONS_MAX]
        await store.commit([absent(put.key) for put in some], some)
    log.info("partitions without owners adopted", count=len(puts), broker_id=broker_id)
