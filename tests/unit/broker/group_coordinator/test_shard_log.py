"""Shards of groups as partitions of `__consumer_offsets`: offsets, restarts, tombstones."""

import asyncio

import pytest

from kafscale.broker.group_coordinator.shard_log import OFFSETS_PER_REVISION, ShardLog
from kafscale.broker.group_coordinator.shard_logs import IDLE_SECONDS
from kafscale.errors import NotOwnerError, OffsetOutOfRangeError, StoreUnavailableError
from kafscale.groups.committed_offsets import CommittedOffset
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import encode_offset
from kafscale.metadata.schema.model import SHARDS_TOPIC, shard_of
from kafscale.metadata.store.base import Delete, Entry, Put
from kafscale.records import BatchView, iterate
from unit.broker.group_coordinator.nodes import GROUP, TOPIC, ClassicMember, Cluster, simulate

SHARD = shard_of(GROUP)


def put(partition, offset=1):
    committed = CommittedOffset(offset=offset, committed_ms=1000)
    return Put(keys.committed_offset(GROUP, TOPIC, partition), encode_offset(committed))


def delete(partition):
    return Delete(keys.committed_offset(GROUP, TOPIC, partition))


def entries(*written):
    """Entries of the store, for pairs of operation and revision."""
    return [Entry(each.key, each.value, 1, revision) for each, revision in written]


def log_of(revision, *written, **settings):
    log = ShardLog(SHARD, 0, lambda: 5000, **settings)
    log.load(entries(*written), revision)
    return log


def read(log, offset=0):
    """What a consumer gets from this offset on: offset, partition and committed offset."""
    found = []
    while slices := log.read(offset, 2**20, first=True)[0]:
        (batch,) = map(BatchView, slices)
        batch.validate(from_producer=False)
        for record in iterate(batch):
            offset = record.offset + 1
            if not batch.is_control:
                value = record.value and int.from_bytes(record.value[2:10])
                found.append((record.offset, record.key[-1], value))
    assert offset == log.high_watermark, "a reader reaches the end"
    return found


def offset_of(revision, before_last=0):
    return (revision + 1) * OFFSETS_PER_REVISION - 1 - before_last


def test_newest_record_of_each_key_is_read_at_the_offset_of_its_revision():
    log = log_of(9, (put(0), 5), (put(1), 7), (put(2), 7))
    assert read(log) == [(offset_of(5), 0, 1), (offset_of(7, 1), 1, 1), (offset_of(7), 2, 1)]
    end = log.high_watermark
    log.append(12, [put(1, 8), delete(0)])
    newer = [(offset_of(12, 1), 0, None), (offset_of(12), 1, 8)]
    assert read(log) == [(offset_of(7), 2, 1), *newer]
    assert read(log, end) == newer
    log.append(13, [put(0, 3)])
    assert read(log, end) == [(offset_of(12), 1, 8), (offset_of(13), 0, 3)]


def test_end_never_moves_back_though_the_newest_key_is_deleted():
    log = log_of(9, (put(0), 5), (put(1), 9))
    log.append(10, [delete(1)])
    again = log_of(10, (put(0), 5))
    assert again.high_watermark == log.high_watermark
    assert read(again, log.high_watermark) == []
    assert read(again) == [(offset_of(5), 0, 1)]


def test_reader_between_two_records_of_a_revision_misses_none_when_the_log_is_made_again():
    log = log_of(0)
    log.append(5, [put(0), put(1), put(2)])
    (first, *_) = read(log)
    position = first[0] + 1
    # The second key is overwritten while the log does not exist.
    again = log_of(8, (put(0), 5), (put(2), 5), (put(1, 4), 8))
    assert {(key, value) for _, key, value in read(again, position)} >= {(2, 1), (1, 4)}


def test_writes_during_loading_are_applied_once():
    log = ShardLog(SHARD, 0, lambda: 5000)
    log.append(4, [put(0, 4)])
    log.append(5, [put(0, 5)])
    with pytest.raises(NotOwnerError):
        log.check_readable(0)
    log.load(entries((put(0, 4), 4), (put(1), 2)), 4)
    assert read(log) == [(offset_of(2), 1, 1), (offset_of(5), 0, 5)]
    log.check_readable(log.high_watermark)
    with pytest.raises(OffsetOutOfRangeError):
        log.check_readable(log.high_watermark + 1)


def test_tombstones_are_forgotten_but_not_what_replaced_them():
    log = log_of(0, tombstones_max=2)
    log.append(1, [delete(0), delete(1)])
    log.append(2, [put(0)])
    log.append(3, [delete(2), delete(3)])
    assert [key for _, key, _ in read(log)] == [0, 2, 3]


def test_superseded_offsets_are_dropped():
    log = log_of(0)
    for revision in range(1, 5000):
        log.append(revision, [put(revision % 3, revision)])
    assert len(log._offsets) < 2000
    assert [value for _, _, value in read(log)] == [4997, 4998, 4999]


def test_damaged_value_is_left_out():
    damaged = Put(keys.committed_offset(GROUP, TOPIC, 0), b"\xff\xff")
    assert read(log_of(3, (damaged, 2), (put(1), 3))) == [(offset_of(3), 1, 1)]


# --- of a coordinator -----------------------------------------------------------------------------


def test_reader_follows_commits_and_the_group_across_a_change_of_the_coordinator():
    async def body(cluster: Cluster):
        first, second = await cluster.node(), await cluster.node()
        await first.open_shards_of(GROUP)
        await first.commit(10)
        await first.groups.logs.open()
        log = first.groups.logs.find(SHARD)
        assert [value for _, _, value in read(log)] == [10]
        position, seen = log.high_watermark, []
        log.watch(lambda each: seen.append(each.closed))
        await first.commit(11)
        assert seen == [False]
        assert [value for _, _, value in read(log, position)] == [11]
        position = log.high_watermark
        await first.shards.release([SHARD])
        assert seen == [False, True]
        with pytest.raises(NotOwnerError):
            first.groups.logs.find(SHARD)

        await second.open_shards_of(GROUP)
        with pytest.raises(NotOwnerError):
            second.groups.logs.find(SHARD)  # It starts to open the log.
        await asyncio.sleep(0.1)
        log = second.groups.logs.find(SHARD)
        log.check_readable(position)
        assert read(log, position) == []
        await second.groups.delete(GROUP)
        await asyncio.sleep(0.1)
        assert read(log, position)[0][2] is None

    simulate(body)


def test_group_is_shown_with_its_members():
    async def body(cluster: Cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        member = ClassicMember("one")
        await member.join(node)
        await member.sync(node, {member.member_id: b"assignment"})
        await node.groups.logs.open()
        slices, _ = node.groups.logs.find(SHARD).read(0, 2**20, first=True)
        (record,) = iterate(BatchView(slices[0]))
        assert record.key == b"\0\2\0\7readers"
        assert record.value.startswith(b"\0\3\0\x08consumer\0\0\0\1\0\5range")
        assert b"subscription" in record.value
        assert record.value.endswith(b"\0\0\0\x0aassignment")
        assert SHARDS_TOPIC in cluster.topic_stores[0].visible

    simulate(body)


def test_logs_open_when_the_store_is_back_and_are_dropped_without_readers():
    async def body(cluster: Cluster):
        node = await cluster.node()
        await node.open_shards_of(GROUP)
        cluster.store.is_unavailable = True
        with pytest.raises(StoreUnavailableError):
            await node.groups.logs.open()
        cluster.store.is_unavailable = False
        await node.groups.logs.open()
        log = node.groups.logs.find(SHARD)
        await asyncio.sleep(2 * IDLE_SECONDS + 1)
        assert log.closed
        await node.commit(1)
        await node.groups.logs.open()
        assert [value for _, _, value in read(node.groups.logs.find(SHARD))] == [1]

    simulate(body)
