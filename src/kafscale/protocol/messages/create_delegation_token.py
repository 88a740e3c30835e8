"""CreateDelegationToken (38): a token with which clients can authenticate as its owner (KIP-48).

Version notes:
* v0 was dropped by Kafka 4 and is not declared here.
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
* v3: a token for another owner; the requester in the response (KIP-373).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int16, Int32, Int64, Message, String, since


class Renewer(Message):
    principal_type: String = ""
    principal_name: String = ""


class CreateDelegationTokenRequest(Message):
    owner_principal_type: Annotated[String | None, since(3)] = ""
    """None: the requester is the owner."""
    owner_principal_name: Annotated[String | None, since(3)] = ""
    renewers: list[Renewer] = []
    max_lifetime_ms: Int64 = 0


class CreateDelegationTokenResponse(Message):
    error_code: Int16 = 0
    principal_type: String = ""
    principal_name: String = ""
    requester_principal_type: Annotated[String, since(3)] = ""
    requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    throttle_time_ms: Int32 = 0


CREATE_DELEGATION_TOKEN = Api(
    38,
    "CreateDelegationToken",
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    3,
    flexible_since=2,
    version_min=1,
)
