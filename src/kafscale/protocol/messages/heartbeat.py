"""Heartbeat (12): a member of a classic group keeps its session alive.

Version notes:
* v1: throttle time in the response.
* v3: static members name their group instance (KIP-345).
* v4: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int16, Int32, Message, String, since


class HeartbeatRequest(Message):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, since(3)] = None


class HeartbeatResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Int16 = 0


HEARTBEAT = Api(12, "Heartbeat", HeartbeatRequest, HeartbeatResponse, 4, flexible_since=4)
