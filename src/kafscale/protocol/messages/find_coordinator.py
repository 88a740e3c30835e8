"""FindCoordinator (10): find the coordinator of a group or a transactional id.

Version notes:
* v1: also for transactional ids (KIP-98); throttle time and error message in the response.
* v3: flexible.
* v4: any number of keys; top-level fields of one key move into each coordinator (KIP-699).
* v5: the response may have the error TRANSACTION_ABORTABLE (KIP-890).
* v6: also for share groups (KIP-932).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since, until


class FindCoordinatorRequest(Message):
    key: Annotated[String, until(3)] = ""
    key_type: Annotated[Int8, since(1)] = 0
    """What the keys are: 0 group ids, 1 transactional ids, 2 partitions of share groups, written
    `group:topic id:partition`."""
    keys: Annotated[list[String], since(4)] = []


class Coordinator(Message):
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""


class FindCoordinatorResponse(Message):
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    error_code: Annotated[Int16, until(3)] = 0
    error_message: Annotated[String | None, since(1, until=3)] = ""
    node_id: Annotated[Int32, until(3)] = 0
    host: Annotated[String, until(3)] = ""
    port: Annotated[Int32, until(3)] = 0
    coordinators: Annotated[list[Coordinator], since(4)] = []


FIND_COORDINATOR = Api(
    10, "FindCoordinator", FindCoordinatorRequest, FindCoordinatorResponse, 6, flexible_since=3
)
