"""The keys of the metadata store: built from their parts, and parsed back.

    /kafscale/topics/{topic}/config                           TopicConfig
    /kafscale/topics/{topic}/partitions/{partition}           PartitionState
    /kafscale/consumers/{group}/metadata                      ConsumerGroup
    /kafscale/consumers/{group}/offsets/{topic}/{partition}   CommittedOffset
    /kafscale/consumers/{group}/transactions/{producer id}/{number}
                                                              PendingOffsets: a part of what is
                                                              committed with a transaction
    /kafscale/transactions/{transactional id}                 TransactionalId
    /kafscale/group-writers/{broker_id}                       empty: its revision orders the writes
                                                              of a group coordinator
    /kafscale/brokers/{broker_id}                             BrokerRegistration, under a lease
    /kafscale/broker-ids/{host name}:{port}                   the id that was allocated to a broker,
                                                              as decimal digits
    /kafscale/assignments/{topic}/{partition}                 PartitionAssignment
    /kafscale/controller                                      the controller's broker id, as decimal
                                                              digits, under its lease
    /kafscale/metadata/snapshot                               JSON, derived from the others
    /kafscale/metadata/snapshot/{part}                        more topics, in a large cluster
    /kafscale/cluster/id                                      text
    /kafscale/counters/{name}                                 the next value, as decimal digits
    /kafscale/deletions/{topic}                               TopicConfig of a deleted topic whose
                                                              objects are not all removed yet
    /kafscale/deleted-topics/{topic id}                       when the objects of a deleted topic
                                                              were removed, in milliseconds, as
                                                              decimal digits
    /kafscale/internal-topics/{topic}                         TopicConfig of an internal topic,
                                                              which has no log of its own
    /kafscale/access/...                                      see `metadata.access.keys`
    /kafscale/configs/...                                     see `metadata.configs.model`
    /kafscale/restored...                                     see `metadata.cluster.restore_marker`

Invariant: if `parse` returns a value, building a key from it returns the same key. Topic names
contain no slash; group ids and transactional ids may contain any character and are escaped. The
schema names brokers `broker-2`, where Kafka's protocol has the number 2.
"""

from typing import Final

import msgspec

TOPICS: Final = "/kafscale/topics/"
CONSUMERS: Final = "/kafscale/consumers/"
TRANSACTIONS: Final = "/kafscale/transactions/"
GROUP_WRITERS: Final = "/kafscale/group-writers/"
BROKERS: Final = "/kafscale/brokers/"
BROKER_IDS: Final = "/kafscale/broker-ids/"
ASSIGNMENTS: Final = "/kafscale/assignments/"
COUNTERS: Final = "/kafscale/counters/"
DELETIONS: Final = "/kafscale/deletions/"
CLOSED_TOPICS: Final = "/kafscale/closed-topics/"
DELETED_TOPICS: Final = "/kafscale/deleted-topics/"
INTERNAL_TOPICS: Final = "/kafscale/internal-topics/"
CONTROLLER: Final = "/kafscale/controller"
SNAPSHOT: Final = "/kafscale/metadata/snapshot"
CLUSTER_ID: Final = "/kafscale/cluster/id"

_BROKER_PREFIX: Final = "broker-"


class TopicConfigKey(msgspec.Struct, frozen=True):
    topic: str


class PartitionStateKey(msgspec.Struct, frozen=True):
    topic: str
    partition: int


class ConsumerGroupKey(msgspec.Struct, frozen=True):
    group: str


class CommittedOffsetKey(msgspec.Struct, frozen=True):
    group: str
    topic: str
    partition: int


class PendingOffsetsKey(msgspec.Struct, frozen=True):
    group: str
    producer_id: int
    number: int


class TransactionalIdKey(msgspec.Struct, frozen=True):
    transactional_id: str


class BrokerKey(msgspec.Struct, frozen=True):
    broker_id: int


class AssignmentKey(msgspec.Struct, frozen=True):
    topic: str
    partition: int


class CounterKey(msgspec.Struct, frozen=True):
    name: str


class DeletionKey(msgspec.Struct, frozen=True):
    topic: str


class InternalTopicKey(msgspec.Struct, frozen=True):
    topic: str


Key = (
    TopicConfigKey
    | PartitionStateKey
    | ConsumerGroupKey
    | CommittedOffsetKey
    | PendingOffsetsKey
    | TransactionalIdKey
    | BrokerKey
    | AssignmentKey
    | CounterKey
    | DeletionKey
    | InternalTopicKey
)


def topic(name: str) -> str:
    """The prefix of all keys of a topic."""
    return f"{TOPICS}{_checked(name)}/"


def topic_config(name: str) -> str:
    return f"{topic(name)}config"


def partition_states(name: str) -> str:
    """The prefix of the states of a topic's partitions."""
    return f"{topic(name)}partitions/"


def partition_state(name: str, partition: int) -> str:
    return f"{partition_states(name)}{partition}"


def consumer_group(group: str) -> str:
    return f"{CONSUMERS}{_escape(group)}/metadata"


def committed_offsets(group: str) -> str:
    """The prefix of all offsets that a group has committed."""
    return f"{CONSUMERS}{_escape(group)}/offsets/"


def committed_offset(group: str, name: str, partition: int) -> str:
    return f"{committed_offsets(group)}{_checked(name)}/{partition}"


def group_transactions(group: str) -> str:
    """The prefix of the offsets of a group that are pending in transactions."""
    return f"{CONSUMERS}{_escape(group)}/transactions/"


def pending_offsets(group: str, producer_id: int, number: int) -> str:
    """A part of the offsets in a transaction; 0 is the record that it is committed."""
    return f"{group_transactions(group)}{producer_id}/{number}"


def transactional_id(name: str) -> str:
    return f"{TRANSACTIONS}{_escape(name)}"


def group_writer(broker_id: str) -> str:
    return f"{GROUP_WRITERS}{_checked(broker_id)}"


def broker(broker_id: int) -> str:
    return f"{BROKERS}{broker_name(broker_id)}"


def broker_name(broker_id: int) -> str:
    """The name of a broker in the schema.

    >>> broker_name(2)
    'broker-2'
    """
    return f"{_BROKER_PREFIX}{broker_id}"


def parse_broker_name(name: str) -> int | None:
    """The broker id; None for a name that `broker_name` does not return."""
    number = name.removeprefix(_BROKER_PREFIX)
    if number == name or not _is_canonical_number(number):
        return None
    return int(number)


def allocated_broker_id(name: str) -> str:
    """The key of the id of a broker whose id is neither configured nor in its host name."""
    return f"{BROKER_IDS}{_checked(name)}"


def assignments(name: str) -> str:
    """The prefix of the assignments of a topic's partitions."""
    return f"{ASSIGNMENTS}{_checked(name)}/"


def assignment(name: str, partition: int) -> str:
    return f"{assignments(name)}{partition}"


def counter(name: str) -> str:
    """The key of a counter, such as `broker-epoch/0`."""
    assert name, "names in keys are not empty"
    return f"{COUNTERS}{name}"


def snapshot(part: int) -> str:
    """The key of a part of the metadata snapshot; the first one is 0."""
    return f"{SNAPSHOT}/{part}" if part else SNAPSHOT


def deletion(name: str) -> str:
    return f"{DELETIONS}{_checked(name)}"


def internal_topic(name: str) -> str:
    return f"{INTERNAL_TOPICS}{_checked(name)}"


def deleted_topic(topic_id: bytes) -> str:
    """The key that shows that the topic with this id was deleted."""
    return f"{DELETED_TOPICS}{topic_id.hex()}"


def closed_topics(topic_id: bytes) -> str:
    """The prefix of what brokers write when they serve no partition of a deleted topic any more."""
    return f"{CLOSED_TOPICS}{topic_id.hex()}/"


def closed_topic(topic_id: bytes, broker_id: int, epoch: int) -> str:
    """What one session of a broker writes: what an earlier one writes late is another key."""
    return f"{closed_topics(topic_id)}{broker_id}/{epoch}"


def parse(key: str) -> Key | None:  # noqa: C901, PLR0911 - one case per key type.
    """Parse a key; None for keys without parameters and for foreign keys."""
    match key.split("/"):
        case ["", "kafscale", "topics", name, "config"] if name:
            return TopicConfigKey(name)
        case ["", "kafscale", "topics", name, "partitions", number] if (
            name and _is_canonical_number(number)
        ):
            return PartitionStateKey(name, int(number))
        case ["", "kafscale", "consumers", group, "metadata"] if _is_escaped(group):
            return ConsumerGroupKey(_unescape(group))
        case ["", "kafscale", "consumers", group, "offsets", name, number] if (
            _is_escaped(group) and name and _is_canonical_number(number)
        ):
            return CommittedOffsetKey(_unescape(group), name, int(number))
        case ["", "kafscale", "consumers", group, "transactions", producer_id, number] if (
            _is_escaped(group)
            and _is_canonical_number(producer_id)
            and _is_canonical_number(number)
        ):
            return PendingOffsetsKey(_unescape(group), int(producer_id), int(number))
        case ["", "kafscale", "transactions", name] if _is_escaped(name):
            return TransactionalIdKey(_unescape(name))
        case ["", "kafscale", "brokers", name] if (
            broker_id := parse_broker_name(name)
        ) is not None:
            return BrokerKey(broker_id)
        case ["", "kafscale", "assignments", name, number] if name and _is_canonical_number(number):
            return AssignmentKey(name, int(number))
        case ["", "kafscale", "counters", *name] if any(name):
            return CounterKey("/".join(name))
        case ["", "kafscale", "deletions", name] if name:
            return DeletionKey(name)
        case ["", "kafscale", "internal-topics", name] if name:
            return InternalTopicKey(name)
    return None


def _checked(name: str) -> str:
    assert name, "names in keys are not empty"
    assert "/" not in name, name
    return name


def _is_canonical_number(text: str) -> bool:
    """Accept one spelling of a number only, so that keys are unique."""
    return text.isascii() and text.isdecimal() and (text == "0" or not text.startswith("0"))


def _escape(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")


def _unescape(text: str) -> str:
    return text.replace("%2F", "/").replace("%25", "%")


def _is_escaped(text: str) -> bool:
    return _escape(_unescape(text)) == text
