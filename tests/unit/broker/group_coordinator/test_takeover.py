"""Two coordinators for one shard, one of which is stale: only the owner changes anything."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.errors import NotCoordinatorError
from kafscale.groups.model import GroupType
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Put
from unit.broker.group_coordinator.nodes import (
    GROUP,
    OTHER,
    TOPIC,
    TOPIC_ID,
    ClassicMember,
    ConsumerMember,
    simulate,
    stabilize,
)
from unit.metadata.finished_deletion import finish_deletion

NEW_ID = b"orders again".ljust(16, b"-")


async def two_nodes(cluster):
    return await cluster.node(), await cluster.node()


def test_stale_coordinator_commit_fails_and_changes_nothing():
    async def body(cluster):
        stale, owner = await two_nodes(cluster)
        await stale.open_shards_of(GROUP)
        await stale.commit(5)
        await owner.open_shards_of(GROUP)
        await owner.commit(7)
        before = await cluster.store.stored()
        with pytest.raises(NotCoordinatorError):
            await stale.commit(6)
        assert await cluster.store.stored() == before
        assert owner.committed() == {0: 7}
        # From then on it knows that it lost the shard.
        with pytest.raises(NotCoordinatorError):
            stale.committed()

    simulate(body)


def test_stale_commit_does_not_affect_others_in_its_transaction():
    async def body(cluster):
        stale, owner = await two_nodes(cluster)
        await stale.open_shards_of(GROUP, OTHER)
        await owner.open_shards_of(GROUP)
        ends = await asyncio.gather(stale.commit(6), stale.commit(8, OTHER), return_exceptions=True)
        assert [type(end) for end in ends] == [NotCoordinatorError, type(None)]
        assert stale.committed(OTHER) == {0: 8}
        assert stale.shards.served == {shard_of(OTHER)}
        assert owner.committed() == {}

    simulate(body)


def test_join_at_a_stale_coordinator_starts_no_generation():
    async def body(cluster):
        stale, owner = await two_nodes(cluster)
        await stale.open_shards_of(GROUP)
        await owner.open_shards_of(GROUP)
        with pytest.raises(NotCoordinatorError):
            await ClassicMember("a").join(stale)
        member = ClassicMember("b")
        await stabilize(owner, member)
        assert member.generation == 1

    simulate(body)


def test_stale_coordinator_removes_no_members():
    async def body(cluster):
        stale, owner = await two_nodes(cluster)
        await stale.open_shards_of(GROUP)
        member = ClassicMember("a")
        await stabilize(stale, member)
        await owner.open_shards_of(GROUP)
        for _ in range(10):
            await asyncio.sleep(3)
            await member.heartbeat(owner)
        assert stale.shards.served == set()
        assert len(owner.groups.describe(GROUP).members) == 1

    simulate(body)


@pytest.mark.parametrize("planned", [True, False])
def test_classic_group_is_unchanged_at_the_new_owner(planned):
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        members = [ClassicMember("a"), ClassicMember("b", instance_id="static")]
        await stabilize(first, *members)
        before = first.groups.describe(GROUP)
        if planned:
            await first.shards.release(first.shards.served)
        await second.open_shards_of(GROUP)
        after = second.groups.describe(GROUP)
        assert (after.state, after.generation, set(after.members)) == (
            "Stable",
            before.generation,
            set(before.members),
        )
        for _ in range(10):
            await asyncio.sleep(3)
            for member in members:
                await member.heartbeat(second)
        assert await members[0].sync(second, {}) == b"a"
        assert second.groups.describe(GROUP).generation == before.generation

    simulate(body)


def test_static_member_rejoins_at_the_new_owner():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        await stabilize(first, ClassicMember("a"), ClassicMember("b", instance_id="static"))
        generation = first.groups.describe(GROUP).generation
        await second.open_shards_of(GROUP)
        again = ClassicMember("b2", instance_id="static")
        await again.join(second)
        assert again.generation == generation
        assert await again.sync(second, {}) == b"b"

    simulate(body)


def test_consumer_group_epochs_continue_at_the_new_owner():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        member = ConsumerMember("a")
        outcomes = await member.heartbeat(first, joins=True)
        assert outcomes.assignment == {TOPIC_ID: frozenset({0, 1, 2})}
        epoch = member.epoch
        await second.open_shards_of(GROUP)
        with pytest.raises(NotCoordinatorError):
            await ConsumerMember("b").heartbeat(first, joins=True)
        await member.heartbeat(second)
        assert member.epoch == epoch
        await ConsumerMember("c").heartbeat(second, joins=True)
        record = second.groups.describe(GROUP)
        assert (record.group_type, record.generation) == (GroupType.CONSUMER, epoch + 1)

    simulate(body)


def test_offsets_follow_the_shard():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        await first.commit(5)
        for offset, (old, new) in enumerate([(first, second), (second, first)] * 3, start=6):
            await old.shards.release([shard_of(GROUP)])
            await new.open_shards_of(GROUP)
            assert new.committed() == {0: offset - 1}
            await new.commit(offset)

    simulate(body)


# --- created and deleted topics -----------------------------------------------------------------


def test_each_coordinator_deletes_offsets_of_a_deleted_topic():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        await second.open_shards_of(OTHER)
        await first.commit(5)
        await second.commit(6, OTHER)
        await cluster.topic_stores[0].delete(TOPIC)
        await asyncio.sleep(1)
        assert await cluster.store.stored() == {}
        assert cluster.store.rejected == 0

    simulate(body)


def test_offsets_of_a_topic_deleted_during_a_move_are_deleted():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        await first.commit(5)
        await first.shards.release([shard_of(GROUP)])
        await cluster.topic_stores[0].delete(TOPIC)
        await asyncio.sleep(1)
        await second.open_shards_of(GROUP)
        await asyncio.sleep(1)
        assert second.committed() == {}
        assert await cluster.store.stored() == {}

    simulate(body)


def test_offsets_of_a_topic_newer_than_the_catalog_are_kept():
    async def body(cluster):
        first = await cluster.node()
        await first.open_shards_of(GROUP)
        news = cluster.store.watch_gate = asyncio.Event()
        second = await cluster.node()
        late = cluster.topic_stores[1]
        await asyncio.sleep(1)
        await cluster.topic_stores[0].delete(TOPIC)
        await finish_deletion(cluster.store, cluster.topic_stores[0], TOPIC)
        now_ms = virtual_time.clock_ms()
        await cluster.topic_stores[0].create(TOPIC, 3, {}, now_ms, NEW_ID)
        await first.commit(5, topic_id=NEW_ID)
        await first.commit(4, partition=1, topic_id=b"of another time.")
        await second.open_shards_of(GROUP)
        assert late.topics[TOPIC].id == TOPIC_ID
        await asyncio.sleep(1)
        assert second.committed() == {0: 5}
        # It is not an offset of the older topic either, once that is seen to be deleted.
        news.set()
        await asyncio.sleep(1)
        assert late.topics[TOPIC].id == NEW_ID
        assert second.committed() == {0: 5}

    simulate(body)


def test_damaged_topic_record_deletes_no_offsets():
    async def body(cluster):
        first, second = await two_nodes(cluster)
        await first.open_shards_of(GROUP)
        await first.commit(5, topic_id=NEW_ID)
        key = keys.topic_config(TOPIC)
        assert decode_topic(await cluster.store.get(key)).id == TOPIC_ID
        await cluster.store.commit((), [Put(key, b"\xff")])
        await second.open_shards_of(GROUP)
        await asyncio.sleep(1)
        assert second.committed() == {0: 5}

    simulate(body)
