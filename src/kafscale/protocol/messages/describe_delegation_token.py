"""DescribeDelegationToken (41): the delegation tokens that a client may see (KIP-48).

Version notes:
* v0 was dropped by Kafka 4 and is not declared here.
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
* v3: the requester of each token (KIP-373).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int16, Int32, Int64, Message, String, since


class Owner(Message):
    principal_type: String = ""
    principal_name: String = ""


class DescribeDelegationTokenRequest(Message):
    owners: list[Owner] | None = []
    """None: every owner."""


class Renewer(Message):
    principal_type: String = ""
    principal_name: String = ""


class DescribedToken(Message):
    principal_type: String = ""
    principal_name: String = ""
    requester_principal_type: Annotated[String, since(3)] = ""
    requester_principal_name: Annotated[String, since(3)] = ""
    issue_timestamp_ms: Int64 = 0
    expiry_timestamp_ms: Int64 = 0
    max_timestamp_ms: Int64 = 0
    token_id: String = ""
    hmac: Bytes = b""
    renewers: list[Renewer] = []


class DescribeDelegationTokenResponse(Message):
    error_code: Int16 = 0
    tokens: list[DescribedToken] = []
    throttle_time_ms: Int32 = 0


DESCRIBE_DELEGATION_TOKEN = Api(
    41,
    "DescribeDelegationToken",
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    3,
    flexible_since=2,
    version_min=1,
)
