"""Assigns shards as a controller would, and returns their ownership guards."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from msgspec.structs import replace

from doubles.memory_store import MemoryStore
from kafscale.broker.shards.shards import Shards
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment, encode_assignment
from kafscale.metadata.schema.model import SHARD_COUNT, SHARDS_TOPIC, Assignment, shard_of
from kafscale.metadata.store.base import MetadataStore, Put, Snapshot

ALL_SHARDS = range(SHARD_COUNT)


async def assign_shards(
    store: MetadataStore, broker_id: int, broker_epoch: int, shards: Iterable[int] = ALL_SHARDS
) -> dict[int, OwnershipGuard]:
    """Make this broker session the owner of shards, in place of the former owner."""
    owned = [
        Assignment(
            topic=SHARDS_TOPIC,
            partition=shard,
            broker_id=broker_id,
            broker_epoch=broker_epoch,
            leader_epoch=before.leader_epoch + 1 if before else 0,
            fully_rolled=False,
        )
        for shard in shards
        for before in [await assigned(store, shard)]
    ]
    return {each.partition: OwnershipGuard(store, await _put(store, each)) for each in owned}


async def request_move(store: MetadataStore, shard: int, broker_id: int) -> Assignment:
    """Change an assignment without a change of owner."""
    before = await assigned(store, shard)
    assert before is not None
    return await _put(store, replace(before, reassigning_to=broker_id))


async def assigned(store: MetadataStore, shard: int) -> Assignment | None:
    entry = await store.get(keys.assignment(SHARDS_TOPIC, shard))
    return decode_assignment(entry) if entry else None


async def _put(store: MetadataStore, assignment: Assignment) -> Assignment:
    key = keys.assignment(assignment.topic, assignment.partition)
    done = await store.commit((), [Put(key, encode_assignment(assignment))])
    assert done.succeeded
    return replace(assignment, mod_revision=done.revision)


@asynccontextmanager
async def being_loaded(shards: Shards, store: MemoryStore, group_id: str) -> AsyncIterator[None]:
    """Let a coordinator load a group again, for the duration of the block."""
    shard = shard_of(group_id)
    assignment = await assigned(store, shard)
    assert assignment is not None
    await shards.release([shard])
    read, resume = store.range, asyncio.Event()

    async def read_slowly(prefix: str) -> Snapshot:
        await resume.wait()
        return await read(prefix)

    store.range = read_slowly
    loading = asyncio.create_task(shards.open({shard: OwnershipGuard(store, assignment)}))
    await asyncio.sleep(0)
    yield
    store.range = read
    resume.set()
    await loading
