import pytest
from msgspec.structs import replace

from kafscale.errors import FencedError
from kafscale.metadata.cluster import partition_states
from kafscale.metadata.cluster.ownership_guard import OwnershipGuard
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import encode_assignment
from kafscale.metadata.schema.model import Assignment, PartitionState, SegmentInfo
from kafscale.metadata.schema.topic_codec import encode_partition_state
from kafscale.metadata.store.base import Put
from kafscale.metadata.topics.store import TopicStore
from unit.metadata.finished_deletion import finish_deletion


def state_of(topic, partition=0, leader_epoch=1, **fields):
    return PartitionState(
        topic=topic.name,
        topic_id=topic.id,
        partition=partition,
        leader_broker=f"broker-{leader_epoch}",
        leader_epoch=leader_epoch,
        **fields,
    )


async def guard(store, topic, partition=0, leader_epoch=1):
    """Makes broker 1 the owner, in the given leader epoch."""
    assignment = Assignment(
        topic=topic.name,
        partition=partition,
        broker_id=1,
        broker_epoch=10 + leader_epoch,
        leader_epoch=leader_epoch,
        fully_rolled=True,
    )
    key = keys.assignment(topic.name, partition)
    done = await store.commit([], [Put(key, encode_assignment(assignment))])
    return OwnershipGuard(store, replace(assignment, mod_revision=done.revision))


async def save(store, topic, state, under=None):
    under = under or await guard(store, topic, state.partition, state.leader_epoch)
    return await partition_states.save(store, topic, state, under)


def with_topic(run_with_store, body):
    """Plays a body that is handed the store, a topic store, and a topic of three partitions."""

    async def whole(store):
        topic_store = TopicStore(store)
        await topic_store.start()
        topic = await topic_store.create("orders", 3, {}, 0, bytes(16))
        await body(store, topic_store, topic)
        await topic_store.close()

    run_with_store(whole)


def test_partition_states_round_trip(run_with_store):
    async def body(store, _topic_store, topic):
        assert await partition_states.load(store, topic) == {}
        segment = SegmentInfo(
            base_offset=0, size_bytes=100, created_ms=5, last_offset=9, max_timestamp_ms=7
        )
        first = await save(store, topic, state_of(topic, 0, log_end_offset=10, segments=(segment,)))
        second = await save(store, topic, state_of(topic, 2, log_start_offset=4))
        assert await partition_states.load(store, topic) == {0: first, 2: second}

    with_topic(run_with_store, body)


def test_owner_saves_repeatedly(run_with_store):
    async def body(store, topic_store, topic):
        state = state_of(topic)
        for end in range(5):
            state = await save(store, topic, replace(state, log_end_offset=end))
        # A change of the topic's configuration is no new topic.
        await topic_store.set_configs("orders", lambda _old: {"retention.ms": "1"})
        await save(store, topic, replace(state, log_end_offset=5))
        # Nor does it need to know the revision that it replaces.
        await save(store, topic, state_of(topic, log_end_offset=6))
        assert (await partition_states.load(store, topic))[0].log_end_offset == 6

    with_topic(run_with_store, body)


def test_former_owner_cannot_save(run_with_store):
    async def body(store, _topic_store, topic):
        stale = await guard(store, topic, leader_epoch=1)
        old = await save(store, topic, state_of(topic, leader_epoch=1), stale)
        new = await save(store, topic, state_of(topic, leader_epoch=2))
        for state in (old, state_of(topic, leader_epoch=1)):
            with pytest.raises(FencedError, match="has another owner"):
                await save(store, topic, state, stale)
        assert await partition_states.load(store, topic) == {0: new}

    with_topic(run_with_store, body)


def test_owner_saves_during_a_reassignment(run_with_store):
    async def body(store, _topic_store, topic):
        ours = await guard(store, topic)
        moving = replace(ours.assignment, reassigning_to=2)
        await store.commit([ours.compare], [Put(ours.key, encode_assignment(moving))])
        saved = await save(store, topic, state_of(topic), ours)
        assert await partition_states.load(store, topic) == {0: saved}
        assert ours.assignment.reassigning_to == 2

    with_topic(run_with_store, body)


def test_state_does_not_outlive_its_topic(run_with_store):
    async def body(store, topic_store, old):
        state = await save(store, old, state_of(old))
        await topic_store.delete("orders")
        with pytest.raises(FencedError, match="deleted"):
            await save(store, old, state)
        await finish_deletion(store, topic_store, "orders")
        new = await topic_store.create("orders", 3, {}, 0, bytes(range(16)))
        with pytest.raises(FencedError, match="deleted"):
            await save(store, old, state_of(old, leader_epoch=9))
        assert await partition_states.load(store, new) == {}
        saved = await save(store, new, state_of(new))
        assert await partition_states.load(store, new) == {0: saved}

    with_topic(run_with_store, body)


def test_state_of_a_deleted_topic_is_not_loaded(run_with_store):
    async def body(store, _topic_store, topic):
        foreign = encode_partition_state(replace(state_of(topic), topic_id=b"x" * 16))
        await store.commit([], [Put(keys.partition_state(topic.name, 0), foreign)])
        assert await partition_states.load(store, topic) == {}

    with_topic(run_with_store, body)
