"""Targets of the metadata store: the values of every kind of key, and the keys.

The first byte of a value chooses its kind. What was decoded has an encoding, which is decoded to
the same.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from fuzz.target import Target
from kafscale.errors import DamagedObjectError
from kafscale.groups.committed_offsets import CommittedOffset, PendingOffsets
from kafscale.groups.model import GroupRecord, GroupType, MemberRecord
from kafscale.metadata.access import codec as access_codec
from kafscale.metadata.access import keys as access_keys
from kafscale.metadata.access.model import (
    Acl,
    Operation,
    PatternType,
    Permission,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramMechanism,
)
from kafscale.metadata.configs.model import ConfigEntity, EntityKind, decode_configs, encode_configs
from kafscale.metadata.schema import (
    cluster_codec,
    group_codec,
    keys,
    topic_codec,
    transaction_codec,
)
from kafscale.metadata.schema.model import (
    Assignment,
    BrokerInfo,
    ListenerEndpoint,
    PartitionState,
    SegmentInfo,
    Topic,
)
from kafscale.metadata.store.base import Entry
from kafscale.transactions.model import TransactionRecord, TransactionState, TransactionVersion

TOPIC_ID = bytes(range(16))
NOW_MS = 1_750_000_000_000


class Kind(NamedTuple):
    """One kind of value: its key, and an example of what it encodes."""

    key: str
    decode: Callable[[Entry], Any]
    encode: Callable[[Any], bytes]
    example: Any


TOPIC = Topic(
    name="orders",
    id=TOPIC_ID,
    partitions=3,
    configs={"retention.ms": "1000", "cleanup.policy": "compact"},
    created_ms=NOW_MS,
    namespace="default",
    version=2,
    create_revision=3,
    mod_revision=5,
)
STATE = PartitionState(
    topic="orders",
    topic_id=TOPIC_ID,
    partition=0,
    leader_broker="7",
    leader_epoch=4,
    log_end_offset=77,
    segments=(
        SegmentInfo(
            base_offset=0, size_bytes=9, created_ms=NOW_MS, last_offset=76, max_timestamp_ms=1
        ),
    ),
)
BROKER = BrokerInfo(
    id=7,
    epoch=3,
    host="broker-7",
    port=9092,
    rack="a",
    endpoints=(ListenerEndpoint("INSIDE", "broker-7", 9094, "SASL_PLAINTEXT"),),
)
ASSIGNMENT = Assignment(
    topic="orders",
    partition=0,
    broker_id=7,
    broker_epoch=3,
    leader_epoch=4,
    fully_rolled=False,
    lost_owner=(5, 2),
    mod_revision=5,
)
MEMBER = MemberRecord(
    member_id="member",
    client_id="client",
    client_host="127.0.0.1",
    heartbeat_ms=NOW_MS,
    session_timeout_ms=1000,
    rebalance_timeout_ms=1000,
    protocols=(("range", b"data"),),
    subscribed_names=("orders",),
    assigned={TOPIC_ID: frozenset({0, 1})},
)
GROUP = GroupRecord(
    group_id="group",
    group_type=GroupType.CLASSIC,
    state="Stable",
    state_since_ms=NOW_MS,
    protocol_type="consumer",
    protocol="range",
    leader="member",
    generation=4,
    members={"member": MEMBER},
)
OFFSET = CommittedOffset(offset=7, leader_epoch=1, metadata="note", committed_ms=NOW_MS)
PENDING_OFFSETS = PendingOffsets(
    producer_id=7, producer_epoch=3, started_ms=NOW_MS, offsets={("orders", 0): OFFSET}
)
TRANSACTION = TransactionRecord(
    transactional_id="billing",
    producer_id=7,
    previous_producer_id=7,
    next_producer_id=8,
    epoch=4,
    last_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.PREPARE_COMMIT,
    partitions=frozenset({("orders", 0), ("orders", 1), ("returns", 0)}),
    started_ms=NOW_MS,
    updated_ms=NOW_MS,
    version=TransactionVersion.V2,
)
ACL = Acl(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "*",
    Operation.READ,
    Permission.ALLOW,
)
CREDENTIAL = ScramCredential("alice", ScramMechanism.SHA_256, b"salt", 4096, b"stored", b"server")
ALICE = QuotaEntity(user="alice")

KINDS = (
    Kind(keys.topic_config("orders"), topic_codec.decode_topic, topic_codec.encode_topic, TOPIC),
    Kind(
        keys.partition_state("orders", 0),
        topic_codec.decode_partition_state,
        topic_codec.encode_partition_state,
        STATE,
    ),
    Kind(
        keys.broker(7),
        cluster_codec.decode_broker,
        lambda broker: cluster_codec.encode_broker(broker, NOW_MS),
        BROKER,
    ),
    Kind(
        keys.assignment("orders", 0),
        cluster_codec.decode_assignment,
        cluster_codec.encode_assignment,
        ASSIGNMENT,
    ),
    Kind(keys.consumer_group("group"), group_codec.decode_group, group_codec.encode_group, GROUP),
    Kind(
        keys.committed_offset("group", "orders", 0),
        group_codec.decode_offset,
        group_codec.encode_offset,
        OFFSET,
    ),
    Kind(
        keys.pending_offsets("group", 7, 1),
        group_codec.decode_pending_offsets,
        group_codec.encode_pending_offsets,
        PENDING_OFFSETS,
    ),
    Kind(
        keys.transactional_id("billing"),
        transaction_codec.decode_transaction,
        transaction_codec.encode_transaction,
        TRANSACTION,
    ),
    Kind(access_keys.acl(ACL), access_codec.decode_acl, access_codec.encode_acl, ACL),
    Kind(
        access_keys.credential("alice", ScramMechanism.SHA_256),
        access_codec.decode_credential,
        access_codec.encode_credential,
        CREDENTIAL,
    ),
    Kind(
        access_keys.quota(ALICE),
        access_codec.decode_quota,
        lambda found: access_codec.encode_quota(*found),
        (ALICE, {"producer_byte_rate": 1.5}),
    ),
    Kind(
        ConfigEntity(EntityKind.CLIENT_METRICS, "slow").key,
        decode_configs,
        encode_configs,
        {"metrics": "*", "interval.ms": "1000", "match": "client_id=a.*"},
    ),
)


def decode_value(data: bytes) -> None:
    kind = KINDS[data[0] % len(KINDS) if data else 0]
    found = kind.decode(Entry(kind.key, data[1:], 3, 5))
    encoded = kind.encode(found)
    # The bytes are compared, because a quota that is not a number differs from itself.
    assert kind.encode(kind.decode(Entry(kind.key, encoded, 3, 5))) == encoded


def value_seeds() -> Iterator[bytes]:
    for number, kind in enumerate(KINDS):
        yield bytes([number]) + kind.encode(kind.example)


def parse_key(data: bytes) -> None:
    """The keys of groups and transactions, whose names are escaped, are those of brokers."""
    key = data.decode(errors="replace")
    match keys.parse(key):
        case keys.ConsumerGroupKey(group):
            assert keys.consumer_group(group) == key
        case keys.CommittedOffsetKey(group, name, partition):
            assert keys.committed_offset(group, name, partition) == key
        case keys.PendingOffsetsKey(group, producer_id, number):
            assert keys.pending_offsets(group, producer_id, number) == key
        case keys.TransactionalIdKey(name):
            assert keys.transactional_id(name) == key
        case _:
            pass


def key_seeds() -> Iterator[bytes]:
    for kind in KINDS:
        yield kind.key.encode()
    yield keys.consumer_group("a/b%größe").encode()
    yield keys.pending_offsets("a/b", 7, 1).encode()


TARGETS = (
    Target("metadata values", decode_value, value_seeds, (DamagedObjectError,)),
    Target("metadata keys", parse_key, key_seeds, ()),
)
