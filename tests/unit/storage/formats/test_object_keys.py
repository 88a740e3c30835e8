"""Object keys: built as specified, and parsed strictly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.topics import names
from kafscale.storage.formats.object_keys import (
    EPOCH_MAX,
    INT32_MAX,
    INT64_MAX,
    RESERVED_TOPICS,
    LogStartRef,
    SegmentRef,
    TransactionsRef,
    WalRef,
    index_key,
    log_start_key,
    parse,
    parse_segment,
    parse_staged,
    parse_wal,
    partition_prefix,
    segment_key,
    staging_prefix,
    topic_prefix,
    transactions_key,
    wal_key,
    wal_prefix,
)

namespaces = st.sampled_from(("default", "production", "tenant/production", "_wal"))
topics = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True).filter(
    lambda topic: topic not in RESERVED_TOPICS | {".", ".."}
)
partitions = st.integers(0, INT32_MAX)
offsets = st.integers(0, INT64_MAX)


def test_keys_follow_the_specification():
    assert (
        segment_key("production", "orders", 0, 0)
        == "production/orders/0/segment-00000000000000000000.kfs"
    )
    assert (
        index_key("production", "orders", 12, 50_000)
        == "production/orders/12/segment-00000000000000050000.index"
    )
    assert wal_key("default", 3, 17, 42) == "default/_wal/3/0000000017/00000000000000000042.kfw"


@given(namespaces, topics, partitions, offsets)
def test_segment_and_index_keys_round_trip(namespace, topic, partition, base_offset):
    for build, is_index in ((segment_key, False), (index_key, True)):
        key = build(namespace, topic, partition, base_offset)
        assert key.startswith(partition_prefix(namespace, topic, partition))
        assert key.startswith(topic_prefix(namespace, topic))
        ref = SegmentRef(topic, partition, base_offset, is_index)
        assert parse_segment(namespace, key) == parse(namespace, key) == ref
        assert parse("elsewhere", key) is None


@given(namespaces, st.integers(0, INT32_MAX), st.integers(0, EPOCH_MAX), offsets)
def test_wal_keys_round_trip(namespace, broker_id, epoch, sequence):
    key = wal_key(namespace, broker_id, epoch, sequence)
    assert key.startswith(wal_prefix(namespace, broker_id))
    assert parse_wal(namespace, key) == parse(namespace, key) == WalRef(broker_id, epoch, sequence)
    assert parse("elsewhere", key) is None


def test_transactions_keys_sort_after_the_segments_of_their_partition():
    key = transactions_key("default", "orders", 7)
    assert parse("default", key) == TransactionsRef("orders", 7)
    assert (
        segment_key("default", "orders", 7, 10**18) < key < segment_key("default", "orders", 8, 0)
    )


@given(namespaces, topics, partitions)
def test_log_start_keys_round_trip(namespace, topic, partition):
    key = log_start_key(namespace, topic, partition)
    assert parse(namespace, key) == LogStartRef(topic, partition)
    assert parse("elsewhere", key) is None
    assert parse(namespace, key.replace("/log-start", "9999999999/log-start")) is None


@given(st.lists(offsets, min_size=2))
def test_listing_is_in_offset_order(base_offsets):
    keys = [segment_key("default", "orders", 0, offset) for offset in base_offsets]
    assert sorted(keys) == [
        segment_key("default", "orders", 0, offset) for offset in sorted(base_offsets)
    ]


@given(st.lists(st.tuples(st.integers(0, EPOCH_MAX), offsets), min_size=2))
def test_stream_listing_is_in_order_of_epochs_and_sequences(places):
    keys = [wal_key("default", 1, *place) for place in places]
    assert sorted(keys) == [wal_key("default", 1, *place) for place in sorted(places)]


@pytest.mark.parametrize(
    "key",
    [
        "",
        "default",
        "default/",
        "default/orders/0/segment-0.kfs",
        "default/orders/0/segment-000000000000000000000.kfs",
        "default/orders/00/segment-00000000000000000000.kfs",
        "default/orders/-1/segment-00000000000000000000.kfs",
        "default/orders/2147483648/segment-00000000000000000000.kfs",
        "default/orders/0/segment-09223372036854775808.kfs",
        "default/orders/0/segment-00000000000000000000.kfs.tmp",
        "default/orders/0/segment-00000000000000000000.kfs\n",
        "default/orders/0/segment-00000000000000000000",
        "default/orders/0/0/segment-00000000000000000000.kfs",
        "default/orders/segment-00000000000000000000.kfs",
        "default/../0/segment-00000000000000000000.kfs",
        "default/./0/segment-00000000000000000000.kfs",
        "default//0/segment-00000000000000000000.kfs",
        "default/ord ers/0/segment-00000000000000000000.kfs",
        "default/orders/\u0660/segment-00000000000000000000.kfs",
        "default/_wal/0/segment-00000000000000000000.kfs",
        "default/_staging/0/segment-00000000000000000000.index",
        "default/_wal/1/0000000001/1.kfw",
        "default/_wal/1/1/00000000000000000001.kfw",
        "default/_wal/01/0000000001/00000000000000000001.kfw",
        "default/_wal/2147483648/0000000001/00000000000000000001.kfw",
        "default/_wal/1/0000000001/09223372036854775808.kfw",
        "default/_wal/1/0000000001/00000000000000000001.kfw.tmp",
        "other/orders/0/segment-00000000000000000000.kfs",
        "defaultorders/0/segment-00000000000000000000.kfs",
    ],
)
def test_other_keys_parse_to_none(key):
    assert parse("default", key) is None


@pytest.mark.parametrize("topic", sorted(RESERVED_TOPICS))
def test_segment_keys_of_reserved_topics_parse_to_none(topic):
    with pytest.raises(AssertionError):
        segment_key("default", topic, 0, 0)
    assert parse("default", segment_key("default", "orders", 0, 0).replace("orders", topic)) is None
    assert parse("default", log_start_key("default", topic, 0)) is None


def test_reserved_directories_are_invalid_topic_names():
    assert names.RESERVED >= RESERVED_TOPICS


def test_only_staged_keys_parse_as_staged():
    prefix = staging_prefix("ns", "job-1", "orders", 3)
    place = parse_staged("ns", f"{prefix}segment-{7:020d}.kfs")
    assert place == SegmentRef("orders", 3, 7, is_index=False)
    for key in (
        f"{prefix}readme",
        segment_key("ns", "orders", 3, 7),
        f"ns/_staging/orders/3/segment-{7:020d}.kfs",
        f"ns/_staging/job/_wal/3/segment-{7:020d}.kfs",
    ):
        assert parse_staged("ns", key) is None
