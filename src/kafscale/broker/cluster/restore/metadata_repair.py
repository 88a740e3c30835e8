"""Reads restored metadata of topics and partitions, and writes the repairs.

Invariant: every transaction compares the controller's entry, and each change of a topic compares
that topic. A transaction that fails means that another writer is active; the repair starts again.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kafscale.broker.cluster.restore.topics import TopicRepair
from kafscale.errors import DamagedObjectError, StoreUnavailableError
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import NO_REVISION, Assignment, PartitionState, Topic
from kafscale.metadata.schema.topic_codec import (
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from kafscale.metadata.schema.transaction_codec import decode_transaction, encode_transaction
from kafscale.metadata.store.base import (
    COMMIT_BYTES_MAX,
    Compare,
    Delete,
    DeletePrefix,
    Entry,
    MetadataStore,
    Operation,
    Put,
    unchanged,
)
from kafscale.observability.logging import get_logger
from kafscale.text.topic_partition import TopicPartition
from kafscale.transactions.model import TransactionRecord

logger = get_logger(__name__)

PUTS_MAX: Final = 100
"""How many partitions go into one transaction."""

ENTRIES_AT_ONCE: Final = 100
"""How many records are decoded before the event loop runs other tasks."""


class StoredMetadata(msgspec.Struct):
    """What the metadata store holds."""

    topics: dict[str, Topic]
    tombstones: dict[str, Topic]
    states: dict[TopicPartition, PartitionState]
    assignments: defaultdict[str, dict[int, Assignment]]
    """By topic and partition."""
    revisions: list[int]
    """The revisions of all records that were read."""

    def state_of(self, topic: Topic, partition: int) -> PartitionState | None:
        """The state of a partition of this topic, not of an older topic of the same name."""
        state = self.states.get((topic.name, partition))
        return state if state is not None and state.topic_id == topic.id else None

    def add(self, entry: Entry) -> None:
        self.revisions.append(entry.mod_revision)
        match keys.parse(entry.key):
            case keys.TopicConfigKey(name):
                self.topics[name] = decode_topic(entry)
            case keys.DeletionKey(name):
                self.tombstones[name] = decode_topic(entry)
            case keys.PartitionStateKey(name, number):
                self.states[name, number] = decode_partition_state(entry)
            case keys.AssignmentKey(name, number):
                self.assignments[name][number] = decode_assignment(entry)


class MetadataRepair:
    """Repairs the metadata on behalf of a controller."""

    def __init__(self, store: MetadataStore, controller: Entry) -> None:
        self._store = store
        self._controller = controller
        self.topics_revision = 0
        """The revision of the last change of a topic."""

    async def read(self) -> StoredMetadata:
        """Read everything; a damaged record is logged and skipped."""
        known = StoredMetadata({}, {}, {}, defaultdict(dict), [])
        for prefix in (keys.TOPICS, keys.DELETIONS, keys.ASSIGNMENTS):
            for count, entry in enumerate((await self._store.range(prefix)).entries, 1):
                try:
                    known.add(entry)
                except DamagedObjectError as error:
                    logger.error("record damaged", key=error.key, reason=error.reason)
                if count % ENTRIES_AT_ONCE == 0:
                    await asyncio.sleep(0)
        return known

    async def apply(self, repair: TopicRepair) -> None:
        """Write the repaired topic and its tombstone."""
        config, deletion = keys.topic_config(repair.name), keys.deletion(repair.name)
        tombstone = repair.tombstone_after
        tombstone_operation = (
            Put(deletion, encode_topic(tombstone)) if tombstone else Delete(deletion)
        )
        before, after = repair.before, repair.after
        if before is not None and (after is None or after.id != before.id):
            removal: list[Operation] = [
                DeletePrefix(keys.topic(repair.name)),
                DeletePrefix(keys.assignments(repair.name)),
                tombstone_operation,
            ]
            self.topics_revision = await self._commit([_unchanged_topic(config, before)], removal)
            if after is None:
                return
            # A separate transaction, because a key below a deleted prefix cannot be put in the same
            # one.
            before = None
        elif after is None:
            await self._commit(
                [_unchanged_topic(deletion, repair.tombstone_before)], [tombstone_operation]
            )
            return
        changes = [Put(config, encode_topic(after)), tombstone_operation]
        self.topics_revision = await self._commit([_unchanged_topic(config, before)], changes)

    async def write(
        self, assignments: Iterable[Assignment], states: Iterable[PartitionState]
    ) -> None:
        puts = [
            Put(keys.assignment(each.topic, each.partition), encode_assignment(each))
            for each in assignments
        ] + [
            Put(keys.partition_state(each.topic, each.partition), encode_partition_state(each))
            for each in states
        ]
        await self._put(puts)

    async def write_deleted(self, topic_ids: Iterable[bytes], now_ms: int) -> None:
        """Record that topics were deleted, so that their records in the WAL can be deleted."""
        value = str(now_ms).encode()
        await self._put([Put(keys.deleted_topic(topic_id), value) for topic_id in topic_ids])

    async def transactional_ids(self) -> list[TransactionRecord]:
        """All transactional ids; a damaged record is logged and skipped."""
        records = []
        for count, entry in enumerate((await self._store.range(keys.TRANSACTIONS)).entries, 1):
            try:
                if isinstance(keys.parse(entry.key), keys.TransactionalIdKey):
                    records.append(decode_transaction(entry))
            except DamagedObjectError as error:
                logger.error("record damaged", key=error.key, reason=error.reason)
            if count % ENTRIES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return records

    async def write_transactional_ids(self, records: Iterable[TransactionRecord]) -> None:
        """Write transactional ids; few at once, as a record may be large."""
        chunk: list[Put] = []
        size_bytes = 0
        for record in records:
            key = keys.transactional_id(record.transactional_id)
            put = Put(key, encode_transaction(record))
            size_bytes += len(key) + len(put.value)
            if chunk and size_bytes > COMMIT_BYTES_MAX:
                await self._put(chunk)
                chunk, size_bytes = [], len(key) + len(put.value)
            chunk.append(put)
        await self._put(chunk)

    async def _put(self, puts: Sequence[Put]) -> None:
        for first in range(0, len(puts), PUTS_MAX):
            await self._commit([], puts[first : first + PUTS_MAX])

    async def _commit(self, compares: Sequence[Compare], operations: Sequence[Operation]) -> int:
        done = await self._store.commit([unchanged(self._controller), *compares], operations)
        if not done.succeeded:
            raise StoreUnavailableError(
                "the metadata was changed concurrently during the restore; it starts again"
            )
        return done.revision


def _unchanged_topic(key: str, topic: Topic | None) -> Compare:
    return Compare(key=key, mod_revision=topic.mod_revision if topic else NO_REVISION)
