"""The consumer protocol's bytes: round trips, and compatibility with other clients."""

from contextlib import suppress

import aiokafka.coordinator.protocol as aiokafka_protocol
import kafka.protocol.consumer.metadata as kafka_python_protocol
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.errors import EncodeError, ProtocolError
from kafscale.groups.consumer_protocol import (
    VERSION_MAX,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_version,
    encode_assignment,
    encode_subscription,
)

INT32 = st.integers(-(2**31), 2**31 - 1)
VERSIONS = range(VERSION_MAX + 1)

texts = st.text(max_size=12)
user_data = st.none() | st.binary(max_size=12)
numbers = st.lists(INT32, max_size=4).map(tuple)
versions = st.sampled_from(VERSIONS)
assignments = st.dictionaries(texts, numbers, max_size=4)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(texts, max_size=4).map(tuple),
    user_data=user_data,
    owned=st.lists(st.tuples(texts, numbers), max_size=4).map(tuple),
    generation=INT32,
    rack=st.none() | texts,
)

SUBSCRIPTION = Subscription(
    topics=("orders", "zürich"),
    user_data=b"sticky",
    owned=(("orders", (0, 7)),),
    generation=12,
    rack="b",
)
ASSIGNMENT = {"orders": (0, 7), "zürich": ()}

# Made by ConsumerProtocol of the Java client 4.1.1.
JAVA_SUBSCRIPTIONS = [
    (
        (
            "00030000000100066f72646572730000000400000007"
            "0000000100066f72646572730000000200000000000000030000000700067261636b2d61"
        ),
        Subscription(("orders",), b"\0\0\0\7", (("orders", (0, 3)),), 7, "rack-a"),
    ),
    ("00030000000100066f7264657273ffffffff00000000ffffffffffff", Subscription(("orders",))),
]
JAVA_ASSIGNMENT = "00030000000100066f7264657273000000020000000100000002ffffffff"


@pytest.mark.parametrize(("written", "subscription"), JAVA_SUBSCRIPTIONS)
def test_subscription_bytes_match_java(written, subscription):
    assert encode_subscription(subscription).hex() == written
    assert decode_subscription(bytes.fromhex(written)) == subscription


def test_assignment_bytes_match_java():
    assert encode_assignment({"orders": [1, 2]}, None, version=3).hex() == JAVA_ASSIGNMENT
    assert decode_assignment(bytes.fromhex(JAVA_ASSIGNMENT)) == {"orders": (1, 2)}


# --- round trips ------------------------------------------------------------------------------


@given(subscriptions, versions)
def test_subscription_round_trip_per_version(subscription, version):
    written = encode_subscription(subscription, version)
    assert decode_subscription(written) == as_of(subscription, version)
    assert decode_version(written) == version


@given(assignments, user_data, versions)
def test_assignment_round_trip_per_version(assignment, data, version):
    written = encode_assignment(assignment, data, version)
    assert decode_assignment(written) == assignment
    assert decode_version(written) == version


@pytest.mark.parametrize("buffer_type", [bytes, bytearray, memoryview])
def test_any_buffer_type_is_decoded(buffer_type):
    assert decode_subscription(buffer_type(encode_subscription(SUBSCRIPTION))) == SUBSCRIPTION
    assert decode_assignment(buffer_type(encode_assignment(ASSIGNMENT))) == ASSIGNMENT


def test_empty_assignment_has_no_partitions():
    assert decode_assignment(b"") == {}


def test_duplicate_topics_are_merged():
    twice = bytes.fromhex(
        "0000 00000002 000161 00000001 00000005 000161 00000001 00000002 00000000"
    )
    assert decode_assignment(twice) == {"a": (5, 2)}


# --- what other clients write and read --------------------------------------------------------


@given(subscriptions, versions)
def test_subscription_bytes_match_kafka_python(subscription, version):
    theirs = kafka_python_protocol.ConsumerProtocolSubscription
    subscription = as_of(subscription, version)
    created = theirs(
        version=version,
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=kafka_python_topics(theirs, subscription.owned, version),
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    assert created.encode(version=version, header=True) == encode_subscription(
        subscription, version
    )


@given(assignments, user_data, versions)
def test_assignment_bytes_match_kafka_python(assignment, data, version):
    theirs = kafka_python_protocol.ConsumerProtocolAssignment
    assigned = kafka_python_topics(theirs, assignment.items(), version)
    created = theirs(version=version, assigned_partitions=assigned, user_data=data)
    assert created.encode(version=version, header=True) == encode_assignment(
        assignment, data, version
    )


@given(subscriptions)
def test_subscription_v0_bytes_match_aiokafka(subscription):
    theirs = aiokafka_protocol.ConsumerProtocolMemberMetadata(
        0, subscription.topics, subscription.user_data
    )
    assert theirs.encode() == encode_subscription(subscription, version=0)


@given(assignments, user_data)
def test_assignment_v0_bytes_match_aiokafka(assignment, data):
    topics = [(topic, list(partitions)) for topic, partitions in assignment.items()]
    theirs = aiokafka_protocol.ConsumerProtocolMemberAssignment(0, topics, data)
    assert theirs.encode() == encode_assignment(assignment, data)


# --- versions and bytes that are not ours -----------------------------------------------------


@pytest.mark.parametrize("version", [4, 99, 0x7FFF])
def test_newer_version_is_read_as_the_newest_known(version):
    start, surplus = version.to_bytes(2, "big"), b"what a later version appends"
    written = start + encode_subscription(SUBSCRIPTION)[2:] + surplus
    assert decode_subscription(written) == SUBSCRIPTION
    assert decode_version(written) == VERSION_MAX
    assert decode_assignment(start + encode_assignment(ASSIGNMENT)[2:] + surplus) == ASSIGNMENT


@pytest.mark.parametrize("version", VERSIONS)
def test_trailing_bytes_are_ignored_as_in_java(version):
    written = encode_subscription(SUBSCRIPTION, version)
    assert decode_subscription(written + b"\0surplus") == as_of(SUBSCRIPTION, version)
    written = encode_assignment(ASSIGNMENT, version=version)
    assert decode_assignment(written + b"\0surplus") == ASSIGNMENT


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment, decode_version])
@pytest.mark.parametrize("version", [-1, -0x8000])
def test_negative_version_is_rejected(decode, version):
    written = version.to_bytes(2, "big", signed=True) + encode_subscription(SUBSCRIPTION)[2:]
    with pytest.raises(ProtocolError, match=f"version {version} does not exist"):
        decode(written)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_rejected(version):
    written = encode_subscription(SUBSCRIPTION, version)
    for size in range(len(written)):
        with pytest.raises(ProtocolError):
            decode_subscription(written[:size])
    written = encode_assignment(ASSIGNMENT, version=version)
    for size in range(1, len(written)):
        with pytest.raises(ProtocolError):
            decode_assignment(written[:size])


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("0000 ffffffff", "array length -1"),
        ("0000 7fffffff", "expected 2 bytes, got 0"),
        ("0000 00000001 ffff", "null string"),
        ("0000 00000001 fffe", "length -2"),
        ("0000 00000001 0002c328", "string is not UTF-8"),
        ("0000 00000000 fffffffe", "length -2"),
    ],
)
def test_decode_error_messages(written, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode_subscription(bytes.fromhex(written))


def test_overlong_topic_name_is_not_encoded():
    encode_assignment({"x" * 32_767: [0]})
    with pytest.raises(EncodeError, match="32768 bytes"):
        encode_assignment({"x" * 32_768: [0]})


@given(st.binary(max_size=64))
def test_arbitrary_bytes_decode_or_raise_protocol_error(noise):
    for decode in (decode_subscription, decode_assignment, decode_version):
        with suppress(ProtocolError):
            decode(noise)


# --- the means --------------------------------------------------------------------------------


def as_of(subscription, version):
    """What is left of a subscription in a version: the rest has its defaults."""
    left = Subscription(topics=subscription.topics, user_data=subscription.user_data)
    if version >= 1:
        left = replace(left, owned=subscription.owned)
    if version >= 2:
        left = replace(left, generation=subscription.generation)
    if version >= 3:
        left = replace(left, rack=subscription.rack)
    return left


def kafka_python_topics(message, topics, version):
    return [
        message.TopicPartition(version=version, topic=topic, partitions=list(partitions))
        for topic, partitions in topics
    ]
