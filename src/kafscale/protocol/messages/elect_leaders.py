"""ElectLeaders (43): elect leaders of partitions (KIP-183).

Version notes:
* v0: the preferred replica is elected, always.
* v1: the kind of election; an error of the whole response (KIP-460).
* v2: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since


class TopicToElect(Message):
    name: String = ""
    partitions: list[Int32] = []


class ElectLeadersRequest(Message):
    election_type: Annotated[Int8, since(1)] = 0
    """0: the preferred replica; 1: any replica where none is in sync, which may lose records."""
    topics: list[TopicToElect] | None = []
    """None for all partitions."""
    timeout_ms: Int32 = 60_000


class ElectedPartition(Message):
    index: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class ElectedTopic(Message):
    name: String = ""
    partitions: list[ElectedPartition] = []


class ElectLeadersResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, since(1)] = 0
    topics: list[ElectedTopic] = []


ELECT_LEADERS = Api(
    43, "ElectLeaders", ElectLeadersRequest, ElectLeadersResponse, 2, flexible_since=2
)
