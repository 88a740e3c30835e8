import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.errors import DamagedObjectError
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.model import PartitionState, SegmentInfo, Topic
from kafscale.metadata.schema.topic_codec import (
    SEGMENTS_MAX,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
    encode_topic,
)
from kafscale.metadata.store.base import COMMIT_BYTES_MAX, Entry

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
TIMES = st.integers(0, 253_402_300_799_999)
CONFIGS = st.dictionaries(
    st.sampled_from(["cleanup.policy", "compression.type", "max.message.bytes"]), st.text()
) | st.dictionaries(
    st.sampled_from(["retention.ms", "retention.bytes", "segment.bytes"]), INT64.map(str)
)
TOPICS = st.builds(
    Topic,
    name=st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    id=st.binary(min_size=16, max_size=16),
    partitions=st.integers(1, 2**31 - 1),
    configs=CONFIGS,
    created_ms=TIMES,
    namespace=st.sampled_from(["default", "production"]),
    version=st.integers(1, 2**63 - 1),
    replicas=st.dictionaries(
        st.integers(0, 2**31 - 1), st.lists(st.integers(0, 2**31 - 1), min_size=1).map(tuple)
    ),
    create_revision=st.just(3),
    mod_revision=st.just(5),
)
SEGMENTS = st.builds(
    SegmentInfo,
    base_offset=COUNTS,
    size_bytes=COUNTS,
    created_ms=TIMES,
    last_offset=COUNTS,
    max_timestamp_ms=INT64,
)
STATES = st.builds(
    PartitionState,
    topic=st.text(),
    topic_id=st.binary(min_size=16, max_size=16),
    partition=st.integers(0, 2**31 - 1),
    leader_broker=st.text(),
    leader_epoch=st.integers(-1, 2**31 - 1),
    log_start_offset=COUNTS,
    log_end_offset=COUNTS,
    high_watermark=COUNTS,
    active_segment=st.text(),
    segments=st.lists(SEGMENTS, max_size=5).map(tuple),
    segment_count=COUNTS,
    size_bytes=COUNTS,
    rolled_offset=COUNTS,
    mod_revision=st.just(5),
)
ORDERS = Topic(name="orders", id=bytes(range(16)), partitions=6, configs={}, created_ms=0)


def entry_of(value, key=None):
    return Entry(key or keys.topic_config("orders"), value, 3, 5)


@given(TOPICS)
def test_topic_round_trips(topic):
    value = encode_topic(topic)
    assert decode_topic(entry_of(value, keys.topic_config(topic.name))) == topic
    assert decode_topic(entry_of(value, keys.deletion(topic.name))) == topic


@given(STATES)
def test_partition_state_round_trips(state):
    assert decode_partition_state(entry_of(encode_partition_state(state), "/any")) == state


def test_topic_is_encoded_with_defaults():
    record = messages.TopicConfig.FromString(encode_topic(ORDERS))
    assert (record.name, record.partitions, record.replication_factor) == ("orders", 6, 1)
    assert record.retention_ms == 604_800_000
    assert record.retention_bytes == -1
    assert record.segment_bytes == 104_857_600
    assert record.config == {"compression.type": "snappy", "cleanup.policy": "delete"}
    assert record.created_at == "1970-01-01T00:00:00.000Z"


def test_explicit_configs_are_in_the_published_fields():
    configs = {"retention.ms": "1000", "segment.bytes": "2000", "compression.type": "zstd"}
    record = messages.TopicConfig.FromString(encode_topic(replace(ORDERS, configs=configs)))
    assert (record.retention_ms, record.retention_bytes, record.segment_bytes) == (1000, -1, 2000)
    assert record.config == {**configs, "cleanup.policy": "delete"}


def test_explicit_default_differs_from_an_implicit_one():
    configs = {"cleanup.policy": "delete", "retention.ms": "604800000"}
    assert decode_topic(entry_of(encode_topic(replace(ORDERS, configs=configs)))).configs == configs


@pytest.mark.parametrize("value", ["-1", "0", str(2**63 - 1)])
def test_fields_have_any_number_that_kafka_accepts(value):
    topic = replace(ORDERS, configs={"retention.ms": value})
    assert decode_topic(entry_of(encode_topic(topic))).configs == topic.configs


def test_topic_with_published_fields_only_is_decoded():
    record = messages.TopicConfig(
        name="orders",
        partitions=3,
        replication_factor=1,
        retention_ms=604_800_000,
        retention_bytes=-1,
        segment_bytes=5000,
        created_at="2025-01-15T10:30:00Z",
        config={"compression.type": "zstd", "cleanup.policy": "delete"},
    )
    entry = entry_of(record.SerializeToString())
    topic = decode_topic(entry)
    assert topic.partitions == 3
    assert topic.created_ms == 1_736_937_000_000
    assert topic.configs == {"segment.bytes": "5000", "compression.type": "zstd"}
    # All readers give it the same id, and another one when it is made again.
    assert decode_topic(entry).id == topic.id
    assert decode_topic(Entry(entry.key, entry.value, 9, 9)).id != topic.id
    assert decode_topic(Entry(entry.key, entry.value, 3, 9)).id == topic.id


def explicitly(name, value):
    record = messages.TopicConfig(
        name="orders", partitions=1, topic_id=bytes(16), config={name: value}, config_set=[name]
    )
    return record.SerializeToString()


@pytest.mark.parametrize(
    "value",
    [
        b"\xff\xff\xff",
        b"",
        messages.TopicConfig(name="other", partitions=1).SerializeToString(),
        messages.TopicConfig(name="a/b", partitions=1).SerializeToString(),
        messages.TopicConfig(name="orders").SerializeToString(),
        messages.TopicConfig(name="orders", partitions=1, topic_id=b"x").SerializeToString(),
        messages.TopicConfig(name="orders", partitions=1, created_at="?").SerializeToString(),
        explicitly("retention.ms", "100H"),
        explicitly("segment.bytes", str(2**63)),
    ],
)
def test_damaged_topic_is_rejected(value):
    with pytest.raises(DamagedObjectError, match="/kafscale/topics/orders/config: "):
        decode_topic(entry_of(value))


def test_damaged_partition_state_is_rejected():
    with pytest.raises(DamagedObjectError, match="not a PartitionState"):
        decode_partition_state(entry_of(b"\xff\xff\xff"))


def test_partition_state_lists_the_newest_segments_only():
    segments = tuple(
        SegmentInfo(
            base_offset=2**60 + i,
            size_bytes=2**40,
            created_ms=2**40,
            last_offset=2**60,
            max_timestamp_ms=2**40,
        )
        for i in range(100_000)
    )
    state = PartitionState(
        topic="x" * 249,
        topic_id=bytes(16),
        partition=1,
        leader_broker="broker-1",
        leader_epoch=1,
        segments=segments,
        segment_count=len(segments),
    )
    value = encode_partition_state(state)
    assert len(value) < COMMIT_BYTES_MAX / 100
    decoded = decode_partition_state(entry_of(value, "/any"))
    assert decoded.segments == segments[-SEGMENTS_MAX:]
    assert decoded.segment_count == 100_000
