"""Migration of partitions that were written before partitions had owners.

A data directory of a single broker from before assignments existed has topics, and records in
segments and in the WAL, but no owners. Invariant: such partitions are never treated as new. They
are assigned to a broker session that has ended, so that they are taken over like those of any
failed broker: its streams are fenced, and all their records are recovered.
"""

from kafscale.metadata.cluster import id_allocator
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment
from kafscale.metadata.store.base import OPERATIONS_MAX, MetadataStore, Put, absent
from kafscale.metadata.topics.catalog import Catalog
from kafscale.observability.logging import get_logger

log = get_logger(__name__)


async def migrate_unowned_partitions(
    store: MetadataStore, catalog: Catalog, *, broker_id: int, now_ms: int
) -> None:
    """Assign the partitions of a store that has topics but no assignments."""
    if not catalog.topics or (await store.range(keys.ASSIGNMENTS)).entries:
        return
    # Former versions used the broker epoch as leader epoch, so new leader epochs must be later.
    epoch = await id_allocator.allocate(store, id_allocator.broker_epoch_counter(str(broker_id)))
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
    log.info("unowned partitions migrated", count=len(puts), broker_id=broker_id)
