"""Partition states in the metadata store: read by all brokers, written by the owner.

Invariants: only the owner writes a state, and a state does not outlive its topic. A broker that has
lost the partition, or whose topic was deleted (even if it was created again), gets `FencedError`
and must stop serving. Owners write states at a roll, a move or a change of the log start, not at
every produce.
"""

from typing import Final

from msgspec.structs import replace

from kafscale.errors import FencedError, StoreUnavailableError
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import NO_REVISION, PartitionState, Topic
from kafscale.metadata.schema.topic_codec import decode_partition_state, encode_partition_state
from kafscale.metadata.store.base import Compare, MetadataStore, Put

ATTEMPTS_MAX: Final = 10
"""Only the last writes of the previous owner can conflict."""


async def load(store: MetadataStore, topic: Topic) -> dict[int, PartitionState]:
    """Return the states of a topic by partition; a partition without a stored state is missing."""
    snapshot = await store.range(keys.partition_states(topic.name))
    states = [decode_partition_state(entry) for entry in snapshot.entries]
    return {state.partition: state for state in states if state.topic_id == topic.id}


async def save(
    store: MetadataStore, topic: Topic, state: PartitionState, guard: OwnershipGuard
) -> PartitionState:
    """Write a state and return it with its new revision, so that the next write needs no read."""
    assert (state.topic, state.topic_id) == (topic.name, topic.id), state
    key = keys.partition_state(state.topic, state.partition)
    config = keys.topic_config(topic.name)
    revision = state.mod_revision
    for _ in range(ATTEMPTS_MAX):
        done = await store.commit(
            [
                Compare(key=config, create_revision=topic.create_revision),
                Compare(key=key, mod_revision=revision),
                guard.compare,
            ],
            [Put(key, encode_partition_state(state))],
        )
        if done.succeeded:
            return replace(state, mod_revision=done.revision)
        revision = await _revision_to_replace(store, topic, state)
        await guard.refresh()
    raise StoreUnavailableError(f"{key}: {ATTEMPTS_MAX} attempts failed because of other writers")


async def _revision_to_replace(store: MetadataStore, topic: Topic, state: PartitionState) -> int:
    """The revision that `state` replaces; raises `FencedError` if the topic was deleted."""
    config = await store.get(keys.topic_config(topic.name))
    if config is None or config.create_revision != topic.create_revision:
        raise FencedError(f"topic {topic.name!r} with id {topic.id.hex()} was deleted")
    entry = await store.get(keys.partition_state(state.topic, state.partition))
    return entry.mod_revision if entry else NO_REVISION
