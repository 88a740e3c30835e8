"""SaslAuthenticate (36): one token of the SASL exchange in each direction (KIP-152).

Version notes:
* v1: how long the session lasts, so that the client can authenticate again in time (KIP-368).
* v2: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Bytes, Int16, Int64, Message, String, since


class SaslAuthenticateRequest(Message):
    token: Bytes = b""


class SaslAuthenticateResponse(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    token: Bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0
    """0: the session does not end, the client need not authenticate again."""


SASL_AUTHENTICATE = Api(
    36, "SaslAuthenticate", SaslAuthenticateRequest, SaslAuthenticateResponse, 2, flexible_since=2
)
