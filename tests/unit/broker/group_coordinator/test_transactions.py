"""Offsets in transactions: they become readable by the marker, all of them, and not before."""

import asyncio
import sys

import pytest
from msgspec.structs import replace

from doubles import virtual_time
from kafscale.broker.shards.writer import WRITES_MAX
from kafscale.errors import (
    GroupNotFoundError,
    IllegalGenerationError,
    InvalidProducerEpochError,
    InvalidTransactionStateError,
    KafscaleError,
    NotCoordinatorError,
    OffsetMetadataTooLargeError,
    TransactionCoordinatorFencedError,
    UnknownMemberError,
)
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import decode_pending_offsets
from kafscale.metadata.schema.model import shard_of
from kafscale.metadata.store.base import Entry, Put
from unit.broker.group_coordinator.nodes import (
    GROUP,
    OFFSETS,
    OTHER,
    TOPIC,
    TOPIC_ID,
    ClassicMember,
    ConsumerMember,
    simulate,
    stabilize,
)

FIRST, SECOND = 1001, 1002
"""Producer ids."""

MANY = WRITES_MAX + 1
SHARD = shard_of(GROUP)
SAME_SHARD = next(name for name in map(str, range(1000)) if shard_of(name) == SHARD)


async def owner(cluster, *group_ids):
    node = await cluster.node()
    await node.open_shards_of(GROUP, *group_ids)
    return node


async def parts(cluster, producer_id=FIRST, group_id=GROUP):
    """The stored parts of a transaction, ascending by number."""
    prefix = keys.pending_offsets(group_id, producer_id, 0)[:-1]
    found = [
        (keys.parse(key).number, decode_pending_offsets(Entry(key, value, 1, 1)))
        for key, value in (await cluster.store.stored()).items()
        if key.startswith(prefix)
    ]
    return [part for _, part in sorted(found, key=lambda each: each[0])]


async def pending(cluster):
    """The stored offsets of the first producer's transaction by partition; None if none."""
    found = {}
    for part in (stored := await parts(cluster)):
        found |= {number: each.offset for (_, number), each in part.offsets.items()}
    return found if stored else None


async def stored_keys(cluster):
    return set(await cluster.store.stored())


# --- markers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, WRITES_MAX - 1, WRITES_MAX, 3 * WRITES_MAX])
@pytest.mark.parametrize("is_commit", [True, False])
def test_offsets_become_readable_by_the_marker_only(count, is_commit):
    async def body(cluster):
        node = await owner(cluster)
        await node.commit(3)
        await node.commit_in_transaction(FIRST, dict.fromkeys(range(count), 10))
        assert (node.committed(), len(node.unstable())) == ({0: 3}, count)
        assert len(await pending(cluster)) == count
        await node.end(FIRST, is_commit=is_commit)
        expected = dict.fromkeys(range(count), 10) if is_commit else {0: 3}
        assert (node.committed(), node.unstable()) == (expected, set())
        await asyncio.sleep(1)
        assert await stored_keys(cluster) == {
            keys.committed_offset(GROUP, TOPIC, number) for number in expected
        }
        assert node.groups.open_transactions(SHARD) == []

    simulate(body)


def test_transaction_costs_one_commit_of_the_store_for_its_offsets_and_one_for_the_marker():
    async def body(cluster):
        node = await owner(cluster, OTHER)
        writer = node.shards.writer
        for _ in range(3):
            before = writer.transactions
            await node.commit_in_transaction(FIRST, dict.fromkeys(range(100), 10))
            await node.end(FIRST)
            await asyncio.sleep(1)
            assert writer.transactions - before == 2

    simulate(body)


def test_offsets_are_not_readable_before_the_marker_is_durable():
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, {0: 10, 1: 11})
        cluster.store.open.clear()
        waiting = asyncio.ensure_future(node.end(FIRST))
        repeated = asyncio.ensure_future(node.end(FIRST))
        await asyncio.sleep(1)
        assert (node.committed(), node.unstable()) == ({}, {0, 1})
        assert not waiting.done()
        assert not repeated.done()
        cluster.store.open.set()
        await asyncio.gather(waiting, repeated)
        assert (node.committed(), node.unstable()) == ({0: 10, 1: 11}, set())

    simulate(body)


def test_marker_ends_the_transaction_in_all_groups_of_the_shard():
    async def body(cluster):
        node = await owner(cluster, OTHER)
        for group_id in (GROUP, SAME_SHARD, OTHER):
            await node.commit_in_transaction(FIRST, {0: 10}, group_id=group_id)
        await node.commit_in_transaction(SECOND, {1: 20})
        await node.end(FIRST)
        assert [node.committed(each) for each in (GROUP, SAME_SHARD, OTHER)] == [
            {0: 10},
            {0: 10},
            {},
        ]
        assert (node.unstable(), node.unstable(OTHER)) == ({1}, {0})

    simulate(body)


def test_late_marker_of_a_former_coordinator_does_not_end_the_next_transaction():
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, {0: 10})
        await node.end(FIRST, coordinator_epoch=2)
        await node.commit_in_transaction(FIRST, {0: 20})
        with pytest.raises(TransactionCoordinatorFencedError):
            await node.end(FIRST, coordinator_epoch=1)
        assert (node.committed(), node.unstable()) == ({0: 10}, {0})
        # Administrators learn which one is needed.
        known = node.groups.registry.open_transactions.coordinator_epoch(SHARD, FIRST)
        assert known == 2
        await node.end(FIRST, coordinator_epoch=known)
        assert (node.committed(), node.unstable()) == ({0: 20}, set())

    simulate(body)


@pytest.mark.parametrize("count", [2, MANY])
def test_repeated_markers_and_markers_without_offsets_succeed(count):
    async def body(cluster):
        node = await owner(cluster)
        await node.end(FIRST)
        await node.commit_in_transaction(FIRST, dict.fromkeys(range(count), 10))
        for is_commit in (True, True, False):
            await node.end(FIRST, is_commit=is_commit)
            assert len(node.committed()) == count
        await node.end(SECOND, is_commit=False)
        await asyncio.sleep(1)
        assert len(node.committed()) == count
        assert await pending(cluster) is None

    simulate(body)


def test_marker_goes_to_the_owner_of_the_shard():
    async def body(cluster):
        node = await owner(cluster)
        with pytest.raises(NotCoordinatorError):
            node.end(FIRST, group_id=OTHER)
        with pytest.raises(NotCoordinatorError):
            node.groups.open_transactions(shard_of(OTHER))

    simulate(body)


def test_marker_of_an_earlier_epoch_changes_nothing():
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, {0: 10}, epoch=4)
        with pytest.raises(InvalidProducerEpochError):
            await node.end(FIRST, epoch=3)
        assert node.unstable() == {0}
        # With KIP-890, the marker has the next epoch.
        await node.end(FIRST, epoch=5)
        assert node.committed() == {0: 10}

    simulate(body)


# --- offsets of one transaction -----------------------------------------------------------------


def test_offsets_of_a_transaction_are_merged():
    async def body(cluster):
        node = await owner(cluster)
        started_ms = virtual_time.clock_ms()
        await node.commit_in_transaction(FIRST, {0: 10, 1: 11}, epoch=7)
        await asyncio.sleep(1)
        await node.commit_in_transaction(FIRST, {1: 21, 2: 22}, epoch=7)
        [opened] = node.groups.open_transactions(SHARD)
        assert opened == (FIRST, 7, started_ms)
        assert await pending(cluster) == {0: 10, 1: 21, 2: 22}
        stored = {(each.producer_epoch, each.started_ms) for each in await parts(cluster)}
        assert stored == {(7, started_ms)}
        await node.end(FIRST, epoch=7)
        assert node.committed() == {0: 10, 1: 21, 2: 22}

    simulate(body)


def test_commit_needs_a_guard_that_no_marker_has_invalidated():
    async def body(cluster):
        node = await owner(cluster)

        async def commit(guard, epoch=0):
            offset = CommittedOffset(offset=1, committed_ms=1, topic_id=TOPIC_ID)
            await node.groups.commit_in_transaction(
                GROUP,
                "",
                None,
                -1,
                producer_id=FIRST,
                producer_epoch=epoch,
                offsets={(TOPIC, 0): offset},
                guard=guard,
            )

        def start(epoch=0, *, adds_partition=False):
            return node.groups.start_verification(
                GROUP, FIRST, epoch, adds_partition=adds_partition
            )

        with pytest.raises(InvalidTransactionStateError):
            await commit(None)
        late = start()
        await node.end(FIRST, is_commit=False)
        with pytest.raises(InvalidTransactionStateError):
            await commit(late)
        assert (node.unstable(), node.groups.list()) == (set(), [])

        # The marker of the transaction before may come late, with the bumped epoch.
        guard = start(1, adds_partition=True)
        await node.end(FIRST, is_commit=False, epoch=1)
        await commit(guard, 1)
        # The others need none, until the transaction ends.
        assert start(1) is None
        await commit(None, 1)
        with pytest.raises(InvalidProducerEpochError):
            await commit(start(0), 0)
        # A late commit shares the guard with the transaction after it, but is not a part of that.
        late = start(2, adds_partition=True)
        guard = start(3, adds_partition=True)
        await node.end(FIRST, is_commit=False, epoch=3)
        with pytest.raises(InvalidTransactionStateError):
            await commit(late, 2)
        assert node.unstable() == set()
        await commit(guard, 3)
        await node.end(FIRST, is_commit=False, epoch=4)
        # Another coordinator may have the marker.
        guard = start(2)
        await node.shards.release([SHARD])
        await node.open_shards_of(GROUP)
        with pytest.raises(InvalidTransactionStateError):
            await commit(guard, 2)

    simulate(body)


@pytest.mark.parametrize("count", [2, MANY])
def test_next_transaction_waits_until_the_last_one_is_written(count):
    async def body(cluster):
        node = await owner(cluster)
        before = dict.fromkeys(range(count), 10)
        await node.commit_in_transaction(FIRST, before)
        cluster.store.open.clear()
        ending = asyncio.ensure_future(node.end(FIRST))
        following = asyncio.ensure_future(node.commit_in_transaction(FIRST, {0: 20}))
        await asyncio.sleep(1)
        assert not following.done()
        cluster.store.open.set()
        await asyncio.gather(ending, following)
        assert (node.committed(), node.unstable()) == (before, {0})
        await node.end(FIRST)
        assert node.committed() == {**before, 0: 20}

    simulate(body)


def test_metadata_and_size_of_pending_offsets_have_bounds():
    async def body(cluster):
        node = await owner(cluster)
        half = "m" * (OFFSETS.group_metadata_bytes_max // 2)
        await node.commit_in_transaction(FIRST, {0: 1}, metadata=half)
        await node.commit_in_transaction(SECOND, {0: 1}, metadata=half)
        with pytest.raises(OffsetMetadataTooLargeError):
            await node.commit_in_transaction(SECOND, {1: 1}, metadata="m")
        await node.commit_in_transaction(SECOND, {0: 2}, metadata=half)
        await node.end(FIRST)
        with pytest.raises(OffsetMetadataTooLargeError):
            await node.commit_in_transaction(3, dict.fromkeys(range(20_000), 1))
        assert node.unstable() == {0}
        with pytest.raises(OffsetMetadataTooLargeError):
            await node.commit_in_transaction(
                FIRST, {0: 1}, metadata=2 * half + "m", group_id=SAME_SHARD
            )
        assert {each.group_id for each in node.groups.list()} == {GROUP}

    simulate(body)


# --- cost ---------------------------------------------------------------------------------------


def test_commit_costs_what_it_adds():
    """However many offsets the transaction has, and however often one is committed."""

    async def body(cluster):
        written = []
        store_commit = cluster.store.commit

        async def commit(compares, operations):
            puts = [each for each in operations if isinstance(each, Put)]
            written.extend(len(each.value) for each in puts if "/transactions/" in each.key)
            return await store_commit(compares, operations)

        cluster.store.commit = commit
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, dict.fromkeys(range(1000), 10), metadata="m" * 100)
        all_bytes = sum(written)
        written.clear()
        for offset in range(200):
            await node.commit_in_transaction(FIRST, {0: offset})
        assert sum(written) < all_bytes / 5
        # Those that are not needed any more are deleted.
        for offset in range(2000):
            await node.commit_in_transaction(SECOND, {0: offset, 1: 10})
            assert len(await parts(cluster, SECOND)) < 50
        await node.commit_in_transaction(SECOND, {0: 2000})
        await node.shards.release([SHARD])
        await node.open_shards_of(GROUP)
        await node.end(FIRST)
        assert (node.committed()[0], node.committed()[999]) == (199, 10)
        await node.end(SECOND)
        assert (node.committed()[0], node.committed()[1]) == (2000, 10)
        await asyncio.sleep(1)
        assert not any("/transactions/" in key for key in await stored_keys(cluster))

    simulate(body)


def test_transaction_of_many_groups_is_ended_in_turns():
    groups = [name for name in map(str, range(20_000)) if shard_of(name) == SHARD]

    async def body(cluster):
        node = await owner(cluster)

        def calls_of_a_commit():
            """How many functions are called to check a commit in the open transaction."""
            counted = []
            sys.setprofile(lambda *event: counted.append(event))
            try:
                node.groups.start_verification(groups[0], FIRST, 0, adds_partition=False)
            finally:
                sys.setprofile(None)
            return len(counted)

        await node.commit_in_transaction(FIRST, {0: 10}, group_id=groups[0])
        calls_before = calls_of_a_commit()
        for group_id in groups[1:]:
            await node.commit_in_transaction(FIRST, {0: 10}, group_id=group_id)
        assert calls_of_a_commit() == calls_before

        ending = asyncio.ensure_future(node.end(FIRST))
        repeated = asyncio.ensure_future(node.end(FIRST))
        last = groups[-1]
        offsets = node.groups.registry.get(last).offsets
        assert not offsets.is_ending(FIRST)
        # The next transaction waits, although nothing of the last one has ended in this group.
        assert node.groups.open_transactions(SHARD) == []
        following = asyncio.ensure_future(
            node.commit_in_transaction(FIRST, {0: 20}, group_id=last, epoch=1)
        )
        await asyncio.gather(ending, following)
        assert repeated.done()
        assert all(node.committed(each) == {0: 10} for each in groups)
        assert node.unstable(last) == {0}
        await node.end(FIRST, epoch=1)
        assert node.committed(last) == {0: 20}

    simulate(body)


# --- the order of commits -----------------------------------------------------------------------


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("count", [3, MANY])
def test_offset_that_was_sent_last_counts(count, restarts):
    async def body(cluster):
        node = await owner(cluster)

        async def restart():
            if restarts:
                await node.shards.release([SHARD])
                await node.open_shards_of(GROUP)

        await node.commit(1, partition=0)
        first = dict.fromkeys(range(count), 10)
        await node.commit_in_transaction(FIRST, first)
        await node.commit(11, partition=1)
        await node.commit_in_transaction(SECOND, {2: 12, 1: 13})
        # More offsets of the first transaction do not make the others newer.
        await node.commit_in_transaction(FIRST, {number + count: 14 for number in range(count)})
        await restart()
        await node.end(SECOND)
        await restart()
        await node.end(FIRST)
        expected = dict.fromkeys(range(count), 10)
        expected |= {number + count: 14 for number in range(count)}
        expected |= {1: 13, 2: 12}
        assert node.committed() == expected
        await restart()
        assert node.committed() == expected
        await node.commit_in_transaction(FIRST, {1: 21})
        await node.commit(22, partition=1)
        await restart()
        await node.end(FIRST)
        assert node.committed()[1] == 22

    simulate(body)


def test_commit_after_a_transaction_is_newer_also_after_a_crash_between_two_writes():
    """The offset is in the store, and the transaction not yet deleted."""

    async def body(cluster):
        cut = cluster.store.cut_after(1000)
        stale, node = await cluster.node(cut), await cluster.node()
        await stale.open_shards_of(GROUP)
        await stale.commit_in_transaction(FIRST, dict.fromkeys(range(MANY), 10))
        ending = asyncio.ensure_future(stale.end(FIRST))
        for _ in range(100):
            if stale.unstable():
                await asyncio.sleep(0.001)
        acknowledged = asyncio.ensure_future(stale.commit(11))
        cluster.store.open.clear()
        await asyncio.sleep(1)
        # These come before the deletion, and fill a commit of the store.
        others = [asyncio.ensure_future(stale.commit(12, partition=each)) for each in range(MANY)]
        await asyncio.sleep(0)
        cluster.store.open.set()
        await acknowledged
        last = asyncio.ensure_future(stale.commit(13))
        cut.commits_left = 1
        await asyncio.sleep(60)
        await asyncio.gather(ending, last, *others, return_exceptions=True)
        assert await pending(cluster)
        await node.open_shards_of(GROUP)
        assert node.committed()[0] == 13

    simulate(body)


# --- takeover -----------------------------------------------------------------------------------


@pytest.mark.parametrize("commits", range(6))
@pytest.mark.parametrize("count", [WRITES_MAX // 2, 3 * WRITES_MAX])
def test_takeover_between_two_writes_leaves_all_offsets_or_none(count, commits):
    async def body(cluster):
        node = await cluster.node()
        cut = cluster.store.cut_after(commits)
        stale = await cluster.node(cut)
        after = dict.fromkeys(range(count), 10)
        before = dict.fromkeys(range(0, count, 2), 5)

        await node.open_shards_of(GROUP)
        await asyncio.gather(*(node.commit(5, partition=number) for number in before))
        await node.commit_in_transaction(FIRST, after)
        await node.commit_in_transaction(SECOND, {count: 20})
        await node.shards.release([SHARD])
        cut.commits_left = 1_000
        await stale.open_shards_of(GROUP, OTHER)
        cut.commits_left = commits
        # Writes of another shard make the first commit of the store nearly full.
        others = [
            asyncio.ensure_future(stale.commit(1, OTHER, number))
            for number in range(WRITES_MAX - 9)
        ]
        acknowledged = True
        try:
            await stale.end(FIRST)
        except KafscaleError:
            acknowledged = False
        seen = stale.committed()
        assert seen == (after if acknowledged else before)
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(60)

        await node.open_shards_of(GROUP)
        taken = node.committed()
        assert taken in ([after] if acknowledged else [before, after])
        assert (SECOND, 0) in [each[:2] for each in node.groups.open_transactions(SHARD)]
        await node.end(FIRST)
        assert (node.committed(), node.unstable()) == (after, {count})
        await asyncio.sleep(1)
        assert await pending(cluster) is None
        offsets = keys.committed_offsets(GROUP)
        assert sum(key.startswith(offsets) for key in await stored_keys(cluster)) == count

    simulate(body)


def test_pending_offsets_are_loaded():
    async def body(cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.open_shards_of(GROUP)
        await first.commit_in_transaction(FIRST, {0: 10, 1: 10}, epoch=3)
        await first.commit_in_transaction(SECOND, {1: 20})
        opened = first.groups.open_transactions(SHARD)
        await second.open_shards_of(GROUP)
        assert (second.committed(), second.unstable()) == ({}, {0, 1})
        assert second.groups.open_transactions(SHARD) == opened
        with pytest.raises(NotCoordinatorError):
            await first.end(FIRST, epoch=3)
        await second.end(FIRST, is_commit=False, epoch=3)
        await second.end(SECOND)
        assert second.committed() == {1: 20}

    simulate(body)


# --- groups and topics --------------------------------------------------------------------------


def test_transaction_keeps_its_group_and_the_offsets_of_its_partitions():
    async def body(cluster):
        node = await owner(cluster)
        await node.commit(1, partition=0)
        await node.commit(1, partition=1)
        await node.commit_in_transaction(FIRST, {0: 10})
        await node.commit_in_transaction(FIRST, {0: 10}, group_id=SAME_SHARD)
        node.groups.offset_settings = replace(OFFSETS, retention_ms=60_000)
        await asyncio.sleep(61)
        node.groups.expire_offsets()
        await asyncio.sleep(1)
        assert node.committed() == {0: 1}
        assert {each.group_id for each in node.groups.list()} == {GROUP, SAME_SHARD}
        await node.end(FIRST, is_commit=False)
        node.groups.expire_offsets()
        await asyncio.sleep(1)
        assert node.groups.list() == []
        assert await stored_keys(cluster) == set()

    simulate(body)


@pytest.mark.parametrize("count", [2, MANY])
def test_deleted_group_forgets_its_transactions(count):
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, dict.fromkeys(range(count), 10))
        await node.commit_in_transaction(SECOND, {0: 20})
        ending = asyncio.ensure_future(node.end(SECOND))
        await asyncio.sleep(0)
        await node.groups.delete(GROUP)
        await ending
        with pytest.raises(GroupNotFoundError):
            node.groups.describe(GROUP)
        assert await stored_keys(cluster) == set()
        await node.end(FIRST)
        assert (node.committed(), node.unstable()) == ({}, set())
        assert node.groups.open_transactions(SHARD) == []

    simulate(body)


@pytest.mark.parametrize("count", [2, MANY])
@pytest.mark.parametrize("commits_before", [False, True])
def test_deleted_offsets_do_not_return(count, commits_before):
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, dict.fromkeys(range(count), 10))
        await node.commit_in_transaction(SECOND, {0: 20})
        ending = asyncio.ensure_future(node.end(FIRST)) if commits_before else None
        await asyncio.sleep(0)
        deleted = await node.groups.delete_offsets(GROUP, [(TOPIC, 0), (TOPIC, 9)])
        assert set(deleted.values()) == {None}
        await (ending or node.end(FIRST))
        await node.end(SECOND)
        expected = {number: 10 for number in range(count) if number not in {0, 9}}
        assert node.committed() == expected
        await asyncio.sleep(1)
        assert len(await stored_keys(cluster)) == len(expected)

    simulate(body)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_pending_offsets_of_a_deleted_topic_are_dropped(is_loaded):
    async def body(cluster):
        node = await owner(cluster)
        await node.commit_in_transaction(FIRST, {0: 10})
        if is_loaded:
            await node.shards.release([SHARD])
        await cluster.topic_stores[0].delete(TOPIC)
        await asyncio.sleep(1)
        if is_loaded:
            await node.open_shards_of(GROUP)
        assert node.unstable() == set()
        await node.end(FIRST)
        assert node.committed() == {}
        assert await stored_keys(cluster) == set()

    simulate(body)


# --- members ------------------------------------------------------------------------------------


async def commit_as(node, member_id, generation, instance_id=None, group_id=GROUP):
    guard = node.groups.start_verification(group_id, FIRST, 0, adds_partition=True)
    offset = CommittedOffset(offset=1, committed_ms=1, topic_id=TOPIC_ID)
    await node.groups.commit_in_transaction(
        group_id,
        member_id,
        instance_id,
        generation,
        producer_id=FIRST,
        producer_epoch=0,
        offsets={(TOPIC, 0): offset},
        guard=guard,
    )


def test_member_of_a_classic_group_is_checked_if_it_is_named():
    async def body(cluster):
        node = await owner(cluster)
        with pytest.raises(IllegalGenerationError):
            await commit_as(node, "a", 1)
        assert node.groups.list() == []
        member = ClassicMember("a")
        await stabilize(node, member)
        await commit_as(node, member.member_id, member.generation)
        await commit_as(node, "", -1)
        with pytest.raises(UnknownMemberError):
            await commit_as(node, "another", member.generation)
        with pytest.raises(IllegalGenerationError):
            await commit_as(node, member.member_id, member.generation + 1)
        with pytest.raises(UnknownMemberError):
            await commit_as(node, member.member_id, member.generation, "not-static")

        # Between Join and Sync a commit is accepted.
        await member.join(node)
        assert node.groups.describe(GROUP).state == "CompletingRebalance"
        await commit_as(node, member.member_id, member.generation)

    simulate(body)


def test_member_of_a_consumer_group_is_checked_if_it_is_named():
    async def body(cluster):
        node = await owner(cluster)
        member = ConsumerMember("a")
        await member.heartbeat(node, joins=True)
        await commit_as(node, "a", member.epoch)
        await commit_as(node, "", -1)
        with pytest.raises(IllegalGenerationError):
            await commit_as(node, "a", member.epoch + 1)
        with pytest.raises(UnknownMemberError):
            await commit_as(node, "b", member.epoch)

    simulate(body)
