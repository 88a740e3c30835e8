"""ConsumerGroupDescribe (69): the state and the members of consumer groups (KIP-848).

Version notes:
* v0: flexible from the start.
* v1: the protocol of each member (KIP-1099).
"""

from typing import Annotated

import msgspec

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import (
    UUID_ZERO,
    Boolean,
    Int8,
    Int16,
    Int32,
    Message,
    String,
    Uuid,
    since,
)


class ConsumerGroupDescribeRequest(Message):
    group_ids: list[String] = []
    include_authorized_operations: Boolean = False


class TopicPartitions(Message):
    topic_id: Uuid = UUID_ZERO
    name: String = ""
    partitions: list[Int32] = []


class Assignment(Message):
    assigned_partitions: list[TopicPartitions] = []


class DescribedMember(Message):
    member_id: String = ""
    group_instance_id: String | None = None
    rack_id: String | None = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: list[String] = []
    subscribed_topic_regex: String | None = None
    assignment: Assignment = msgspec.field(default_factory=Assignment)
    """Its current assignment."""
    target_assignment: Assignment = msgspec.field(default_factory=Assignment)
    """Its target assignment."""
    member_type: Annotated[Int8, since(1)] = -1
    """-1 unknown, 0 classic protocol, 1 consumer protocol."""


class DescribedGroup(Message):
    error_code: Int16 = 0
    error_message: String | None = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    """Grows with every change of members, subscriptions or topics."""
    assignment_epoch: Int32 = 0
    """The group epoch for which the target assignment was computed."""
    assignor_name: String = ""
    members: list[DescribedMember] = []
    authorized_operations: Int32 = -2147483648
    """A bit for each ACL operation, at the position of its number; the default if not requested."""


class ConsumerGroupDescribeResponse(Message):
    throttle_time_ms: Int32 = 0
    groups: list[DescribedGroup] = []


CONSUMER_GROUP_DESCRIBE = Api(
    69,
    "ConsumerGroupDescribe",
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    1,
    flexible_since=0,
)
