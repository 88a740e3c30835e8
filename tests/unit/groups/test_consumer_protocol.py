"""What consumers tell each other: comes back as written, and is what other clients write."""

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
def test_java_writes_a_subscription_in_the_same_bytes(written, subscription):
    assert encode_subscription(subscription).hex() == written
    assert decode_subscription(bytes.fromhex(written)) == subscription


def test_java_writes_an_assignment_in_the_same_bytes():
    assert encode_assignment({"orders": [1, 2]}, None, version=3).hex() == JAVA_ASSIGNMENT
    assert decode_assignment(bytes.fromhex(JAVA_ASSIGNMENT)) == {"orders": (1, 2)}


# --- round trips ------------------------------------------------------------------------------


@given(subscriptions, versions)
def test_a_subscription_comes_back_as_far_as_its_version_goes(subscription, version):
    written = encode_subscription(subscription, version)
    assert decode_subscription(written) == as_of(subscription, version)
    assert decode_version(written) == version


@given(assignments, user_data, versions)
def test_an_assignment_comes_back_in_every_version(assignment, data, version):
    written = encode_assignment(assignment, data, version)
    assert decode_assignment(written) == assignment
    assert decode_version(written) == version


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind):
    assert decode_subscription(kind(encode_subscription(SUBSCRIPTION))) == SUBSCRIPTION
    assert decode_assignment(kind(encode_assignment(ASSIGNMENT))) == ASSIGNMENT


def test_a_member_without_an_assignment_has_no_partitions():
    assert decode_assignment(b"") == {}


def test_a_topic_that_is_named_twice_has_all_its_partitions():
    twice = bytes.fromhex(
        "0000 00000002 000161 00000001 00000005 000161 00000001 00000002 00000000"
    )
    assert decode_assignment(twice) == {"a": (5, 2)}


# --- what other clients write and read --------------------------------------------------------


@given(subscriptions, versions)
def test_kafka_python_writes_a_subscription_in_the_same_bytes(subscription, version):
    theirs = kafka_python_protocol.ConsumerProtocolSubscription
    subscription = as_of(subscription, version)
    made = theirs(
        version=version,
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=kafka_python_topics(theirs, subscription.owned, version),
        generation_id=subscription.generation,
        rack_id=subscription.rack,
    )
    assert made.encode(version=version, header=True) == encode_subscription(subscription, version)


@given(assignments, user_data, versions)
def test_kafka_python_writes_an_assignment_in_the_same_bytes(assignment, data, version):
    theirs = kafka_python_protocol.ConsumerProtocolAssignment
    assigned = kafka_python_topics(theirs, assignment.items(), version)
    made = theirs(version=version, assigned_partitions=assigned, user_data=data)
    assert made.encode(version=version, header=True) == encode_assignment(assignment, data, version)


@given(subscriptions)
def test_aiokafka_writes_a_subscription_of_version_0_in_the_same_bytes(subscription):
    theirs = aiokafka_protocol.ConsumerProtocolMemberMetadata(
        0, subscription.topics, subscription.user_data
    )
    assert theirs.encode() == encode_subscription(subscription, version=0)


@given(assignments, user_data)
def test_aiokafka_writes_an_assignment_of_version_0_in_the_same_bytes(assignment, data):
    topics = [(topic, list(partitions)) for topic, partitions in assignment.items()]
    theirs = aiokafka_protocol.ConsumerProtocolMemberAssignment(0, topics, data)
    assert theirs.encode() == encode_assignment(assignment, data)


# --- versions and bytes that are not ours -----------------------------------------------------


@pytest.mark.parametrize("version", [4, 99, 0x7FFF])
def test_a_newer_version_is_read_as_the_newest_that_we_know(version):
    start, surplus = version.to_bytes(2, "big"), b"what a later version appends"
    written = start + encode_subscription(SUBSCRIPTION)[2:] + surplus
    assert decode_subscription(written) == SUBSCRIPTION
    assert decode_version(written) == VERSION_MAX
    assert decode_assignment(start + encode_assignment(ASSIGNMENT)[2:] + surplus) == ASSIGNMENT


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_that_follow_are_passed_over_as_java_does(version):
    written = encode_subscription(SUBSCRIPTION, version)
    assert decode_subscription(written + b"\0surplus") == as_of(SUBSCRIPTION, version)
    written = encode_assignment(ASSIGNMENT, version=version)
    assert decode_assignment(written + b"\0surplus") == ASSIGNMENT


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment, decode_version])
@pytest.mark.parametrize("version", [-1, -0x8000])
def test_a_negative_version_is_refused(decode, version):
    written = version.to_bytes(2, "big", signed=True) + encode_subscription(SUBSCRIPTION)[2:]
    with pytest.raises(ProtocolError, match=f"no version {version}"):
        decode(written)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_refused(version):
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
        ("0000 ffffffff", "a list of -1 elements"),
        ("0000 7fffffff", "2 bytes were announced, 0 are there"),
        ("0000 00000001 ffff", "a text is missing"),
        ("0000 00000001 fffe", "a length of -2"),
        ("0000 00000001 0002c328", "a text is not UTF-8"),
        ("0000 00000000 fffffffe", "a length of -2"),
    ],
)
def test_a_refusal_says_what_is_wrong(written, reason):
    with pytest.raises(ProtocolError, match=reason):
        decode_subscription(bytes.fromhex(written))


def test_a_name_that_no_topic_can_have_is_not_written():
    encode_assignment({"x" * 32_767: [0]})
    with pytest.raises(EncodeError, match="32768 bytes"):
        encode_assignment({"x" * 32_768: [0]})


@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_read_or_refused_and_nothing_else(noise):
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
