"""Two coordinators for one shard, one of which does not know: only the owner changes anything."""

import asyncio

import pytest

from kafscale.errors import NotCoordinatorError
from kafscale.groups.model import Kind
from kafscale.metadata.cluster.group_shards import shard_of
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.topic_codec import decode_topic
from kafscale.metadata.store.base import Put
from kafscale.testing import virtual_time
from unit.broker.group_coordinator.nodes import (
    GROUP,
    OTHER,
    TOPIC,
    TOPIC_ID,
    Classic,
    Consumer,
    play,
    settle,
)

NEW_ID = b"orders again".ljust(16, b"-")


async def two(cluster):
    return await cluster.node(), await cluster.node()


def test_a_stale_commit_fails_and_changes_nothing():
    async def body(cluster):
        stale, owner = await two(cluster)
        await stale.take(GROUP)
        await stale.commit(5)
        await owner.take(GROUP)
        await owner.commit(7)
        before = await cluster.store.knows()
        with pytest.raises(NotCoordinatorError):
            await stale.commit(6)
        assert await cluster.store.knows() == before
        assert owner.committed() == {0: 7}
        # From then on it knows.
        assert not stale.groups.is_coordinator_of(GROUP)
        with pytest.raises(NotCoordinatorError):
            stale.committed()

    play(body)


def test_a_stale_commit_does_not_hurt_those_that_share_its_transaction():
    async def body(cluster):
        stale, owner = await two(cluster)
        await stale.take(GROUP, OTHER)
        await owner.take(GROUP)
        ends = await asyncio.gather(stale.commit(6), stale.commit(8, OTHER), return_exceptions=True)
        assert [type(end) for end in ends] == [NotCoordinatorError, type(None)]
        assert stale.committed(OTHER) == {0: 8}
        assert stale.groups.shards == {shard_of(OTHER)}
        assert owner.committed() == {}

    play(body)


def test_a_stale_join_begins_no_generation():
    async def body(cluster):
        stale, owner = await two(cluster)
        await stale.take(GROUP)
        await owner.take(GROUP)
        with pytest.raises(NotCoordinatorError):
            await Classic("a").join(stale)
        member = Classic("b")
        await settle(owner, member)
        assert member.generation == 1

    play(body)


def test_a_stale_coordinator_that_misses_members_sends_nobody_away():
    async def body(cluster):
        stale, owner = await two(cluster)
        await stale.take(GROUP)
        member = Classic("a")
        await settle(stale, member)
        await owner.take(GROUP)
        for _ in range(10):
            await asyncio.sleep(3)
            await member.heartbeat(owner)
        assert stale.groups.shards == set()
        assert len(owner.groups.describe(GROUP).members) == 1

    play(body)


@pytest.mark.parametrize("planned", [True, False])
def test_classic_members_find_their_group_as_it_was(planned):
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        members = [Classic("a"), Classic("b", instance_id="static")]
        await settle(first, *members)
        before = first.groups.describe(GROUP)
        if planned:
            await first.groups.release_shards(first.groups.shards)
        await second.take(GROUP)
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

    play(body)


def test_a_static_member_takes_its_place_again_at_the_new_owner():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        await settle(first, Classic("a"), Classic("b", instance_id="static"))
        generation = first.groups.describe(GROUP).generation
        await second.take(GROUP)
        again = Classic("b2", instance_id="static")
        await again.join(second)
        assert again.generation == generation
        assert await again.sync(second, {}) == b"b"

    play(body)


def test_epochs_of_consumer_groups_go_on():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        member = Consumer("a")
        told = await member.beat(first, joins=True)
        assert told.assignment == {TOPIC_ID: frozenset({0, 1, 2})}
        epoch = member.epoch
        await second.take(GROUP)
        with pytest.raises(NotCoordinatorError):
            await Consumer("b").beat(first, joins=True)
        await member.beat(second)
        assert member.epoch == epoch
        await Consumer("c").beat(second, joins=True)
        record = second.groups.describe(GROUP)
        assert (record.kind, record.generation) == (Kind.CONSUMER, epoch + 1)

    play(body)


def test_offsets_are_where_the_group_is():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        await first.commit(5)
        for offset, (old, new) in enumerate([(first, second), (second, first)] * 3, start=6):
            await old.groups.release_shards([shard_of(GROUP)])
            await new.take(GROUP)
            assert new.committed() == {0: offset - 1}
            await new.commit(offset)

    play(body)


# --- topics that come and go --------------------------------------------------------------------


def test_each_coordinator_forgets_a_deleted_topic_for_its_own_groups():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        await second.take(OTHER)
        await first.commit(5)
        await second.commit(6, OTHER)
        await cluster.catalogs[0].delete(TOPIC)
        await asyncio.sleep(1)
        assert await cluster.store.knows() == {}
        assert cluster.store.refused == 0

    play(body)


def test_offsets_of_a_topic_that_went_while_the_shard_moved_are_deleted():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        await first.commit(5)
        await first.groups.release_shards([shard_of(GROUP)])
        await cluster.catalogs[0].delete(TOPIC)
        await asyncio.sleep(1)
        await second.take(GROUP)
        await asyncio.sleep(1)
        assert second.committed() == {}
        assert await cluster.store.knows() == {}

    play(body)


def test_offsets_of_a_topic_that_is_not_known_here_yet_are_kept():
    async def body(cluster):
        first = await cluster.node()
        await first.take(GROUP)
        news = cluster.store.held_news = asyncio.Event()
        second = await cluster.node()
        late = cluster.catalogs[1]
        await asyncio.sleep(1)
        await cluster.catalogs[0].delete(TOPIC)
        await cluster.catalogs[0].finish_deletion(TOPIC, TOPIC_ID)
        now_ms = virtual_time.clock_ms()
        await cluster.catalogs[0].create(TOPIC, 3, {}, now_ms, NEW_ID)
        await first.commit(5, topic_id=NEW_ID)
        await first.commit(4, partition=1, topic_id=b"of another time.")
        await second.take(GROUP)
        assert late.topics[TOPIC].id == TOPIC_ID
        await asyncio.sleep(1)
        assert second.committed() == {0: 5}
        # Nor is it an offset of the older topic, when that is seen to go.
        news.set()
        await asyncio.sleep(1)
        assert late.topics[TOPIC].id == NEW_ID
        assert second.committed() == {0: 5}

    play(body)


def test_a_topic_that_cannot_be_read_costs_no_offsets():
    async def body(cluster):
        first, second = await two(cluster)
        await first.take(GROUP)
        await first.commit(5, topic_id=NEW_ID)
        key = keys.topic_config(TOPIC)
        assert decode_topic(await cluster.store.get(key)).id == TOPIC_ID
        await cluster.store.commit((), [Put(key, b"\xff")])
        await second.take(GROUP)
        await asyncio.sleep(1)
        assert second.committed() == {0: 5}

    play(body)
