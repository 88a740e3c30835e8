import pytest
from msgspec.structs import replace

from kafscale.errors import FencedError
from kafscale.metadata import keys, partition_states
from kafscale.metadata.catalog import Catalog
from kafscale.metadata.encoding import encode_partition_state
from kafscale.metadata.model import PartitionState, SegmentInfo
from kafscale.metadata.store import Put


def state_of(topic, partition=0, leader_epoch=1, **fields):
    return PartitionState(
        topic=topic.name,
        topic_id=topic.id,
        partition=partition,
        leader_broker=f"broker-{leader_epoch}",
        leader_epoch=leader_epoch,
        **fields,
    )


def with_topic(play, body):
    """Plays a body that is handed the store, a catalog, and a topic of three partitions."""

    async def whole(store):
        catalog = Catalog(store)
        await catalog.start()
        topic = await catalog.create("orders", 3, {}, 0, bytes(16))
        await body(store, catalog, topic)
        await catalog.close()

    play(whole)


def test_states_are_loaded_as_they_were_saved(play):
    async def body(store, _catalog, topic):
        assert await partition_states.load(store, topic) == {}
        segment = SegmentInfo(
            base_offset=0, size_bytes=100, created_ms=5, last_offset=9, max_timestamp_ms=7
        )
        first = await partition_states.save(
            store, topic, state_of(topic, 0, log_end_offset=10, segments=(segment,))
        )
        second = await partition_states.save(store, topic, state_of(topic, 2, log_start_offset=4))
        assert await partition_states.load(store, topic) == {0: first, 2: second}

    with_topic(play, body)


def test_an_owner_saves_again_and_again(play):
    async def body(store, catalog, topic):
        state = state_of(topic)
        for end in range(5):
            state = await partition_states.save(store, topic, replace(state, log_end_offset=end))
        # A change of the topic's configuration is no new topic.
        await catalog.set_configs("orders", lambda _old: {"retention.ms": "1"})
        await partition_states.save(store, topic, replace(state, log_end_offset=5))
        # Nor does it need to know the revision that it replaces.
        await partition_states.save(store, topic, state_of(topic, log_end_offset=6))
        assert (await partition_states.load(store, topic))[0].log_end_offset == 6

    with_topic(play, body)


def test_a_stale_owner_cannot_save(play):
    async def body(store, _catalog, topic):
        old = await partition_states.save(store, topic, state_of(topic, leader_epoch=1))
        new = await partition_states.save(store, topic, state_of(topic, leader_epoch=2))
        for stale in (old, state_of(topic, leader_epoch=1)):
            with pytest.raises(FencedError, match="led by 'broker-2' since epoch 2, after our 1"):
                await partition_states.save(store, topic, stale)
        assert await partition_states.load(store, topic) == {0: new}

    with_topic(play, body)


def test_a_state_never_outlives_its_topic(play):
    async def body(store, catalog, old):
        state = await partition_states.save(store, old, state_of(old))
        await catalog.delete("orders")
        with pytest.raises(FencedError, match="deleted"):
            await partition_states.save(store, old, state)
        await catalog.finish_deletion("orders", old.id)
        new = await catalog.create("orders", 3, {}, 0, bytes(range(16)))
        with pytest.raises(FencedError, match="deleted"):
            await partition_states.save(store, old, state_of(old, leader_epoch=9))
        assert await partition_states.load(store, new) == {}
        saved = await partition_states.save(store, new, state_of(new))
        assert await partition_states.load(store, new) == {0: saved}

    with_topic(play, body)


def test_a_state_that_somebody_left_of_another_topic_is_not_loaded(play):
    async def body(store, _catalog, topic):
        foreign = encode_partition_state(replace(state_of(topic), topic_id=b"x" * 16))
        await store.commit([], [Put(keys.partition_state(topic.name, 0), foreign)])
        assert await partition_states.load(store, topic) == {}

    with_topic(play, body)
