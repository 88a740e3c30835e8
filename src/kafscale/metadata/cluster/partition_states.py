"""The states of partitions in the metadata store: read by all, each written by its owner.

The laws: a state is written by the partition's owner only, and never outlives its topic: who has
lost the partition, or whose topic was deleted, even if there is a new one of that name, gets
`FencedError` and must stop. When a state is worth writing is left to the owner: at a
roll, a move or a change of the log's start, never for each produce.
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
"""An owner is alone with its partition, but for the last writes of the one before."""


async def load(store: MetadataStore, topic: Topic) -> dict[int, PartitionState]:
    """The states of the topic's partitions, by partition; one that was never written has none."""
    snapshot = await store.range(keys.partition_states(topic.name))
    states = [decode_partition_state(entry) for entry in snapshot.entries]
    return {state.partition: state for state in states if state.topic_id == topic.id}


async def save(
    store: MetadataStore, topic: Topic, state: PartitionState, guard: OwnershipGuard
) -> PartitionState:
    """Write a state, and return it with its revision: written again, it needs no read before."""
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
    raise StoreUnavailableError(f"{key} was changed by others {ATTEMPTS_MAX} times in a row")


async def _revision_to_replace(store: MetadataStore, topic: Topic, state: PartitionState) -> int:
    """The revision of what may be overwritten by `state`; `FencedError` if that may not be."""
    config = await store.get(keys.topic_config(topic.name))
    if config is None or config.create_revision != topic.create_revision:
        raise FencedError(f"topic {topic.name!r} of id {topic.id.hex()} is deleted")
    entry = await store.get(keys.partition_state(state.topic, state.partition))
    return entry.mod_revision if entry else NO_REVISION
