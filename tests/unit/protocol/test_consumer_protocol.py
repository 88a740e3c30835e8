"""The consumer protocol's formats: they come back as written, and are what other clients write."""

from contextlib import suppress
from typing import Any

import aiokafka.coordinator.protocol as aiokafka_protocol
import kafka.protocol.consumer.metadata as kafka_python_protocol
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import EncodeError, ProtocolError
from kafscale.protocol.consumer_protocol import (
    VERSION_MAX,
    Assignment,
    Subscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    decode_version,
    encode_assignment,
    encode_subscription,
)

VERSIONS = range(VERSION_MAX + 1)
INT32 = st.integers(-(2**31), 2**31 - 1)

texts = st.text(max_size=12)
user_data = st.none() | st.binary(max_size=12)
topic_partitions = st.lists(
    st.builds(TopicPartitions, name=texts, partitions=st.lists(INT32, max_size=4)), max_size=4
)
subscriptions = st.builds(
    Subscription,
    topics=st.lists(texts, max_size=4),
    user_data=user_data,
    owned_partitions=topic_partitions,
    generation_id=INT32,
    rack_id=st.none() | texts,
)
assignments = st.builds(Assignment, assigned_partitions=topic_partitions, user_data=user_data)
versions = st.sampled_from(VERSIONS)

SUBSCRIPTION = Subscription(
    topics=["orders", "zürich"],
    user_data=b"sticky",
    owned_partitions=[TopicPartitions("orders", [0, 7])],
    generation_id=12,
    rack_id="b",
)
ASSIGNMENT = Assignment(
    assigned_partitions=[TopicPartitions("orders", [0, 7]), TopicPartitions("zürich", [])],
    user_data=b"sticky",
)


# --- round trips ------------------------------------------------------------------------------


@given(subscriptions, versions)
def test_a_subscription_comes_back_as_far_as_its_version_goes(
    subscription: Subscription, version: int
):
    assert decode_subscription(encode_subscription(subscription, version)) == as_of(
        subscription, version
    )


@given(assignments, versions)
def test_an_assignment_comes_back_in_every_version(assignment: Assignment, version: int):
    assert decode_assignment(encode_assignment(assignment, version)) == assignment


def test_the_newest_version_is_written_unless_another_is_asked_for():
    assert decode_version(encode_subscription(SUBSCRIPTION)) == 3
    assert decode_version(encode_assignment(ASSIGNMENT)) == 3
    assert decode_version(encode_assignment(ASSIGNMENT, version=1)) == 1


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_read(kind: Any):
    assert decode_subscription(kind(encode_subscription(SUBSCRIPTION))) == SUBSCRIPTION


# --- what other clients write and read --------------------------------------------------------


@given(subscriptions, versions)
def test_kafka_python_writes_a_subscription_in_the_same_bytes(
    subscription: Subscription, version: int
):
    theirs = kafka_python_protocol.ConsumerProtocolSubscription
    theirs_made = theirs(
        version=version, **fields_of(as_of(subscription, version), version, theirs.TopicPartition)
    )
    written = encode_subscription(subscription, version)
    assert theirs_made.encode(version=version, header=True) == written
    assert theirs.decode(written).topics == subscription.topics


@given(assignments, versions)
def test_kafka_python_writes_an_assignment_in_the_same_bytes(assignment: Assignment, version: int):
    theirs = kafka_python_protocol.ConsumerProtocolAssignment
    theirs_made = theirs(version=version, **fields_of(assignment, version, theirs.TopicPartition))
    assert theirs_made.encode(version=version, header=True) == encode_assignment(
        assignment, version
    )


@given(subscriptions)
def test_aiokafka_writes_a_subscription_of_version_0_in_the_same_bytes(
    subscription: Subscription,
):
    theirs = aiokafka_protocol.ConsumerProtocolMemberMetadata(
        0, subscription.topics, subscription.user_data
    )
    assert theirs.encode() == encode_subscription(subscription, version=0)


@given(assignments)
def test_aiokafka_writes_an_assignment_of_version_0_in_the_same_bytes(assignment: Assignment):
    theirs = aiokafka_protocol.ConsumerProtocolMemberAssignment(
        0,
        [(topic.name, topic.partitions) for topic in assignment.assigned_partitions],
        assignment.user_data,
    )
    assert theirs.encode() == encode_assignment(assignment, version=0)


# --- versions and bytes that are not ours -----------------------------------------------------


@pytest.mark.parametrize("version", [4, 99, 0x7FFF])
def test_a_newer_version_is_read_as_the_newest_that_we_know(version: int):
    start, surplus = version.to_bytes(2, "big"), b"what a later version appends"
    subscription = start + encode_subscription(SUBSCRIPTION)[2:] + surplus
    assignment = start + encode_assignment(ASSIGNMENT)[2:] + surplus
    assert decode_subscription(subscription) == SUBSCRIPTION
    assert decode_assignment(assignment) == ASSIGNMENT
    assert decode_version(subscription) == VERSION_MAX


@pytest.mark.parametrize("version", VERSIONS)
def test_bytes_that_follow_are_ignored_as_java_does(version: int):
    written = encode_subscription(SUBSCRIPTION, version)
    assert decode_subscription(written + b"\0surplus") == as_of(SUBSCRIPTION, version)
    written = encode_assignment(ASSIGNMENT, version)
    assert decode_assignment(written + b"\0surplus") == ASSIGNMENT


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment, decode_version])
@pytest.mark.parametrize("version", [-1, -0x8000])
def test_a_negative_version_is_refused(decode: Any, version: int):
    written = version.to_bytes(2, "big", signed=True) + encode_subscription(SUBSCRIPTION)[2:]
    with pytest.raises(ProtocolError, match=f"no version {version}"):
        decode(written)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_truncation_is_refused(version: int):
    for written, decode in (
        (encode_subscription(SUBSCRIPTION, version), decode_subscription),
        (encode_assignment(ASSIGNMENT, version), decode_assignment),
    ):
        for size in range(len(written)):
            with pytest.raises(ProtocolError):
                decode(written[:size])


@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_read_or_refused_and_nothing_else(noise: bytes):
    for decode in (decode_subscription, decode_assignment):
        with suppress(ProtocolError):
            decode(noise)


@pytest.mark.parametrize("version", [-1, VERSION_MAX + 1])
def test_a_version_that_we_do_not_know_is_not_written(version: int):
    with pytest.raises(EncodeError):
        encode_subscription(SUBSCRIPTION, version)
    with pytest.raises(EncodeError):
        encode_assignment(ASSIGNMENT, version)


# --- the means --------------------------------------------------------------------------------


def as_of(subscription: Subscription, version: int) -> Subscription:
    """What is left of a subscription in a version: the rest has its defaults."""
    left = Subscription(topics=subscription.topics, user_data=subscription.user_data)
    if version >= 1:
        left.owned_partitions = subscription.owned_partitions
    if version >= 2:
        left.generation_id = subscription.generation_id
    if version >= 3:
        left.rack_id = subscription.rack_id
    return left


def fields_of(message: Subscription | Assignment, version: int, partition: Any) -> dict[str, Any]:
    """Our fields as kafka-python's, which go by the same names, but for those of a topic."""
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    for name in ("owned_partitions", "assigned_partitions"):
        if name in fields:
            fields[name] = [
                partition(version=version, topic=topic.name, partitions=topic.partitions)
                for topic in fields[name]
            ]
    return fields
