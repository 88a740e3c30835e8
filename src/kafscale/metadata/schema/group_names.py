"""What the members of a group read, by names: how readers of the published schema are told.

The law: names are added to what our own fields say, as far as they are known; nothing that we wrote
is read back from them. A topic whose name is not known, and bytes of members that only other
members understand, are left out. Of a record that has nothing but names, our fields are made up as
if its members had sent the oldest version of what consumers tell each other.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from kafscale.errors import DamagedObjectError, EncodeError, ProtocolError
from kafscale.groups.consumer_protocol import (
    PROTOCOL_TYPE,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kafscale.groups.model import GroupRecord, Kind, MemberRecord
from kafscale.metadata._generated import metadata_pb2 as messages
from kafscale.metadata.store.base import Entry

Named = tuple[Iterable[str], Mapping[str, Iterable[int]]]
"""The topics that a member subscribes to, and the partitions that it has."""


def add(
    record: messages.ConsumerGroup, group: GroupRecord, topic_names: Mapping[bytes, str]
) -> None:
    """Say by names, for readers of the published schema, what each member reads."""
    for member_id, member in group.members.items():
        if group.kind is Kind.CONSUMER:
            subscribed, assigned = _names_of_consumer(member, topic_names)
        elif group.protocol_type == PROTOCOL_TYPE:
            subscribed, assigned = _names_of_classic(member, group.protocol)
        else:
            continue
        named = record.members[member_id]
        named.subscriptions.extend(subscribed)
        for topic, numbers in sorted(assigned.items()):
            named.assignments.add(topic=topic, partitions=numbers)


def drop(record: messages.ConsumerGroup) -> None:
    """Take the names out again."""
    for member in record.members.values():
        member.ClearField("subscriptions")
        member.ClearField("assignments")


def _names_of_consumer(member: MemberRecord, topic_names: Mapping[bytes, str]) -> Named:
    return member.subscribed_names, {
        topic_names[topic_id]: sorted(numbers)
        for topic_id, numbers in member.assigned.items()
        if topic_id in topic_names
    }


def _names_of_classic(member: MemberRecord, protocol: str) -> Named:
    subscribed: Iterable[str] = ()
    assigned: Mapping[str, Iterable[int]] = {}
    # These are the clients' own bytes: whoever writes others has no names to show.
    with suppress(ProtocolError):
        offers = dict(member.protocols)
        metadata = offers.get(protocol) or next(iter(offers.values()), b"")
        subscribed = decode_subscription(metadata).topics
    with suppress(ProtocolError):
        assigned = decode_assignment(member.assignment)
    return subscribed, assigned


def make_up(entry: Entry, record: messages.ConsumerGroup) -> None:
    """Fill our own fields of a classic group's record, whose writer knew but names."""
    for member in record.members.values():
        member.rebalance_timeout_ms = record.rebalance_timeout_ms
        if record.protocol_type != PROTOCOL_TYPE or not record.protocol:
            continue
        subscription = Subscription(tuple(member.subscriptions))
        assignment = {topic.topic: topic.partitions for topic in member.assignments}
        try:
            metadata = encode_subscription(subscription, version=0)
            member.assignment = encode_assignment(assignment)
        except EncodeError as error:
            raise DamagedObjectError(entry.key, str(error)) from error
        member.protocols.add(name=record.protocol, metadata=metadata)
