"""ExpireDelegationToken (40): shorten the life of a delegation token (KIP-48).

Version notes:
* v0 was dropped by Kafka 4 and is not declared here.
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int16, Int32, Int64, Message


class ExpireDelegationTokenRequest(Message):
    hmac: Bytes = b""
    """Of the token, which it identifies."""
    expiry_period_ms: Int64 = 0
    """After how long it shall expire; negative: at once."""


class ExpireDelegationTokenResponse(Message):
    error_code: Int16 = 0
    expiry_timestamp_ms: Int64 = 0
    throttle_time_ms: Int32 = 0


EXPIRE_DELEGATION_TOKEN = Api(
    40,
    "ExpireDelegationToken",
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    2,
    flexible_since=2,
    version_min=1,
)
