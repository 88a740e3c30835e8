"""ConsumerGroupHeartbeat (68): join, stay in and leave a group of the consumer protocol (KIP-848).

A member sends what has changed since its last heartbeat, and null or -1 for what has not; the
coordinator responds in the same way.

Version notes:
* v0: flexible from the start.
* v1: topics may be subscribed to by a regular expression (KIP-848); the client generates its
  member id (KIP-1082).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import UUID_ZERO, Int16, Int32, Message, String, Uuid, since


class TopicPartitions(Message):
    topic_id: Uuid = UUID_ZERO
    partitions: list[Int32] = []


class ConsumerGroupHeartbeatRequest(Message):
    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    """0 to join, -1 to leave, -2 if a static member leaves temporarily."""
    group_instance_id: String | None = None
    rack_id: String | None = None
    rebalance_timeout_ms: Int32 = -1
    """How long the coordinator waits for the member to revoke partitions."""
    subscribed_topic_names: list[String] | None = None
    subscribed_topic_regex: Annotated[String | None, since(1)] = None
    """In the syntax of RE2/J."""
    server_assignor: String | None = None
    """The name of the assignor that the coordinator should use; null to let it choose."""
    owned_partitions: list[TopicPartitions] | None = None


class Assignment(Message):
    assigned_partitions: list[TopicPartitions] = []


class ConsumerGroupHeartbeatResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    member_id: String | None = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Assignment | None = None


CONSUMER_GROUP_HEARTBEAT = Api(
    68,
    "ConsumerGroupHeartbeat",
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    1,
    flexible_since=0,
)
