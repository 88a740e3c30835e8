"""Groups and offsets round-trip, and are readable with the published schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.group_codec import (
    NAMED_BYTES_MAX,
    decode_group,
    decode_offset,
    decode_pending_offsets,
    encode_group,
    encode_offset,
    encode_pending_offsets,
)
from kafscale.metadata.schema.protobuf import TIME_MS_MAX
from kafscale.metadata.store.base import Entry

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, TIME_MS_MAX)
IDS = st.binary(min_size=16, max_size=16)
TEXTS = st.text(max_size=8)
BYTES = st.binary(max_size=16)
PARTITIONS = st.dictionaries(IDS, st.frozensets(INT32, min_size=1, max_size=3), max_size=2)
SUBSCRIPTIONS = st.builds(Subscription, st.lists(TEXTS, max_size=2).map(tuple))
MEMBERS = st.builds(
    MemberRecord,
    member_id=TEXTS,
    instance_id=st.none() | TEXTS,
    client_id=TEXTS,
    client_host=TEXTS,
    heartbeat_ms=TIMES,
    session_timeout_ms=INT32,
    rebalance_timeout_ms=INT32,
    protocols=st.lists(
        st.tuples(TEXTS, BYTES | SUBSCRIPTIONS.map(encode_subscription)), max_size=2
    ).map(tuple),
    assignment=BYTES | st.dictionaries(TEXTS, st.lists(INT32), max_size=2).map(encode_assignment),
    is_classic=st.booleans(),
    rack_id=st.none() | TEXTS,
    member_epoch=INT32,
    previous_member_epoch=INT32,
    subscribed_names=st.lists(TEXTS, max_size=2).map(tuple),
    subscribed_regex=TEXTS,
    server_assignor=st.none() | TEXTS,
    assigned=PARTITIONS,
    revoking=PARTITIONS,
    target=PARTITIONS,
)
GROUPS = st.builds(
    GroupRecord,
    group_id=st.text(min_size=1, max_size=8),
    group_type=st.sampled_from(GroupType),
    state=TEXTS,
    state_since_ms=TIMES,
    protocol_type=st.just("consumer") | TEXTS,
    protocol=TEXTS,
    leader=TEXTS,
    generation=INT32,
    assignment_epoch=INT32,
    members=st.lists(MEMBERS, max_size=3).map(lambda them: {it.member_id: it for it in them}),
)
OFFSETS = st.builds(
    CommittedOffset,
    offset=INT64,
    leader_epoch=INT32,
    metadata=TEXTS,
    committed_ms=TIMES,
    expires_ms=st.none() | TIMES,
    topic_id=st.just(b"") | IDS,
    commit_number=INT64,
)
PENDING = st.builds(
    PendingOffsets,
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    started_ms=TIMES,
    offsets=st.dictionaries(
        st.tuples(st.sampled_from(["orders", "payments"]), st.integers(0, 2**31 - 1)),
        OFFSETS,
        max_size=3,
    ),
    is_committed=st.booleans(),
)

ORDERS_ID = bytes(range(16))
PAYMENTS_ID = bytes(range(16, 32))
CLASSIC_MEMBER = MemberRecord(
    member_id="consumer-1",
    client_id="consumer",
    client_host="/10.0.0.7",
    heartbeat_ms=1_736_937_000_000,
    session_timeout_ms=30_000,
    rebalance_timeout_ms=60_000,
    protocols=(
        ("range", encode_subscription(Subscription(("orders",)))),
        ("sticky", encode_subscription(Subscription(("payments", "orders")))),
    ),
    assignment=encode_assignment({"payments": [2], "orders": [0, 1]}),
)
CLASSIC = GroupRecord(
    group_id="billing",
    state="Stable",
    protocol_type="consumer",
    protocol="sticky",
    leader="consumer-1",
    generation=7,
    members={"consumer-1": CLASSIC_MEMBER},
)
CONSUMER = GroupRecord(
    group_id="billing",
    group_type=GroupType.CONSUMER,
    state="Reconciling",
    protocol_type="consumer",
    protocol="uniform",
    members={
        "consumer-1": MemberRecord(
            member_id="consumer-1",
            is_classic=False,
            subscribed_names=("orders", "payments"),
            assigned={ORDERS_ID: frozenset({3, 1}), PAYMENTS_ID: frozenset({0})},
        )
    },
)
GROUP_KEY = keys.consumer_group("billing")
OFFSET_KEY = keys.committed_offset("billing", "orders", 3)


def entry_of(value, key=GROUP_KEY):
    return Entry(key, value, 3, 5)


def published(group, topic_names=None):
    """The only member of a group, as a reader of the published schema sees it."""
    record = messages.ConsumerGroup.FromString(encode_group(group, topic_names or {}))
    member = record.members["consumer-1"]
    assigned = {it.topic: list(it.partitions) for it in member.assignments}
    return list(member.subscriptions), assigned


# --- round trips ------------------------------------------------------------------------------


@given(GROUPS)
def test_group_round_trips(group):
    assert decode_group(entry_of(encode_group(group), keys.consumer_group(group.group_id))) == group


@given(GROUPS, st.dictionaries(IDS, TEXTS))
def test_published_names_are_not_read_back(group, topic_names):
    names = topic_names | {
        topic_id: "known" for member in group.members.values() for topic_id in member.assigned
    }
    entry = entry_of(encode_group(group, names), keys.consumer_group(group.group_id))
    assert decode_group(entry) == group


@given(OFFSETS)
def test_offset_round_trips(committed):
    assert decode_offset(entry_of(encode_offset(committed), OFFSET_KEY)) == committed


@given(PENDING)
def test_pending_offsets_round_trip(pending):
    key = keys.pending_offsets("billing", pending.producer_id, 3)
    assert decode_pending_offsets(entry_of(encode_pending_offsets(pending), key)) == pending


@pytest.mark.parametrize("instance_id", [None, "", "till-4"])
def test_missing_instance_id_differs_from_an_empty_one(instance_id):
    member = replace(CLASSIC_MEMBER, instance_id=instance_id, rack_id=instance_id)
    group = replace(CLASSIC, members={member.member_id: member})
    assert decode_group(entry_of(encode_group(group))).members["consumer-1"] == member


def test_offset_expiry_is_limited_to_the_year_9999():
    committed = CommittedOffset(offset=1, committed_ms=5, expires_ms=2**62)
    assert decode_offset(entry_of(encode_offset(committed), OFFSET_KEY)).expires_ms == TIME_MS_MAX


# --- readers and writers of the published schema ----------------------------------------------


def test_group_has_the_published_fields():
    record = messages.ConsumerGroup.FromString(encode_group(CLASSIC))
    assert (record.group_id, record.state, record.generation_id) == ("billing", "Stable", 7)
    assert (record.protocol_type, record.protocol) == ("consumer", "sticky")
    assert (record.leader, record.rebalance_timeout_ms) == ("consumer-1", 60_000)
    member = record.members["consumer-1"]
    assert (member.client_id, member.client_host) == ("consumer", "/10.0.0.7")
    assert member.heartbeat_at == "2025-01-15T10:30:00.000Z"
    assert member.session_timeout_ms == 30_000


def test_classic_member_has_the_topics_of_the_selected_protocol():
    assert published(CLASSIC) == (["payments", "orders"], {"orders": [0, 1], "payments": [2]})
    assert published(replace(CLASSIC, protocol=""))[0] == ["orders"]


@pytest.mark.parametrize(
    "group",
    [
        replace(CLASSIC, protocol_type="connect"),
        replace(
            CLASSIC,
            members={
                "consumer-1": replace(
                    CLASSIC_MEMBER, protocols=(("sticky", b"\xff"),), assignment=b"\xff"
                )
            },
        ),
    ],
)
def test_opaque_member_metadata_has_no_names(group):
    assert published(group) == ([], {})


def test_consumer_member_has_partitions_of_known_topics():
    names = {ORDERS_ID: "orders", bytes(16): "unrelated"}
    assert published(CONSUMER, names) == (["orders", "payments"], {"orders": [1, 3]})
    assert published(CONSUMER) == (["orders", "payments"], {})


def test_group_with_published_fields_only_is_decoded():
    record = messages.ConsumerGroup(
        group_id="billing",
        state="Stable",
        protocol_type="consumer",
        protocol="range",
        leader="consumer-1",
        generation_id=4,
        members={
            "consumer-1": messages.GroupMember(
                client_id="consumer",
                client_host="/10.0.0.7",
                heartbeat_at="2025-01-15T10:30:00Z",
                subscriptions=["orders"],
                assignments=[messages.Assignment(topic="orders", partitions=[0, 1])],
                session_timeout_ms=10_000,
            )
        },
        rebalance_timeout_ms=60_000,
    )
    group = decode_group(entry_of(record.SerializeToString()))
    assert (group.group_type, group.state, group.generation) == (GroupType.CLASSIC, "Stable", 4)
    member = group.members["consumer-1"]
    assert (member.is_classic, member.instance_id) == (True, None)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, 60_000)
    assert member.heartbeat_ms == 1_736_937_000_000
    [(protocol, metadata)] = member.protocols
    assert (protocol, decode_subscription(metadata).topics) == ("range", ("orders",))
    assert decode_assignment(member.assignment) == {"orders": (0, 1)}


@pytest.mark.parametrize(("protocol_type", "protocol"), [("connect", "default"), ("consumer", "")])
def test_no_fields_are_synthesized_without_a_protocol(protocol_type, protocol):
    record = messages.ConsumerGroup(
        group_id="billing",
        state="PreparingRebalance",
        protocol_type=protocol_type,
        protocol=protocol,
        members={"worker-1": messages.GroupMember(client_id="worker")},
    )
    member = decode_group(entry_of(record.SerializeToString())).members["worker-1"]
    assert member == MemberRecord(member_id="worker-1", client_id="worker")


def test_offset_with_published_fields_only_is_decoded():
    record = messages.CommittedOffset(offset=150, committed_at="2025-01-15T10:30:00Z")
    expected = CommittedOffset(offset=150, committed_ms=1_736_937_000_000)
    assert decode_offset(entry_of(record.SerializeToString(), OFFSET_KEY)) == expected
    record.leader_epoch = 3
    decoded = decode_offset(entry_of(record.SerializeToString(), OFFSET_KEY))
    assert decoded == replace(expected, leader_epoch=3)


# --- bounds and damage ------------------------------------------------------------------------


def test_large_group_omits_the_names():
    topics = tuple(f"topic-{number:0200}" for number in range(100))
    large = replace(CONSUMER.members["consumer-1"], subscribed_names=topics)
    members = {f"consumer-{number}": large for number in range(1, 31)}
    assert published(replace(CONSUMER, members={"consumer-1": large}))[0] == list(topics)

    group = replace(CONSUMER, members={id_: replace(large, member_id=id_) for id_ in members})
    value = encode_group(group)
    assert NAMED_BYTES_MAX / 2 < len(value) < NAMED_BYTES_MAX
    assert published(group) == ([], {})
    assert decode_group(entry_of(value)) == group


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\xff\xff\xff", "not a ConsumerGroup message"),
        (messages.ConsumerGroup(group_id="other"), "contains another group id: 'other'"),
        (messages.ConsumerGroup(group_id="billing", kind="share"), "unknown group type 'share'"),
        (messages.ConsumerGroup(group_id="billing", state_since="?"), "not a time"),
        (
            messages.ConsumerGroup(
                group_id="billing", members={"a": messages.GroupMember(heartbeat_at="?")}
            ),
            "not a time",
        ),
        (
            messages.ConsumerGroup(
                group_id="billing",
                kind="consumer",
                members={
                    "a": messages.GroupMember(
                        target=[messages.GroupMember.Partitions(topic_id=b"x", partitions=[1])]
                    )
                },
            ),
            "invalid topic id of 1 bytes",
        ),
        (
            messages.ConsumerGroup(
                group_id="billing",
                protocol_type="consumer",
                protocol="range",
                members={"a": messages.GroupMember(subscriptions=["x" * 40_000])},
            ),
            "string of 40000 bytes",
        ),
    ],
)
def test_damaged_group_is_rejected(record, reason):
    value = record if isinstance(record, bytes) else record.SerializeToString()
    with pytest.raises(
        DamagedObjectError, match=f"/kafscale/consumers/billing/metadata: .*{reason}"
    ):
        decode_group(entry_of(value))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\xff\xff\xff", "not a CommittedOffset message"),
        (messages.CommittedOffset(committed_at="?"), "not a time"),
        (messages.CommittedOffset(expires_at="?"), "not a time"),
        (messages.CommittedOffset(topic_id=b"x"), "invalid topic id of 1 bytes"),
    ],
)
def test_damaged_offset_is_rejected(record, reason):
    value = record if isinstance(record, bytes) else record.SerializeToString()
    with pytest.raises(DamagedObjectError, match=f"/offsets/orders/3: .*{reason}"):
        decode_offset(entry_of(value, OFFSET_KEY))


PendingOffset = messages.PendingOffsets.Offset


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\xff\xff\xff", "not a PendingOffsets message"),
        (messages.PendingOffsets(producer_id=8), "another producer id: 8"),
        (messages.PendingOffsets(producer_id=7, started_at="?"), "not a time"),
        (
            messages.PendingOffsets(producer_id=7, offsets=[PendingOffset(topic="a/b")]),
            "invalid partition 'a/b' 0",
        ),
        (
            messages.PendingOffsets(
                producer_id=7,
                offsets=[PendingOffset(topic="a", offset=messages.CommittedOffset(topic_id=b"x"))],
            ),
            "invalid topic id of 1 bytes",
        ),
    ],
)
def test_damaged_pending_offsets_are_rejected(record, reason):
    value = record if isinstance(record, bytes) else record.SerializeToString()
    with pytest.raises(DamagedObjectError, match=f"/billing/transactions/7/3: .*{reason}"):
        decode_pending_offsets(entry_of(value, keys.pending_offsets("billing", 7, 3)))
