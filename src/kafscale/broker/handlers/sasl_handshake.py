"""SaslHandshake: v0-1.

Behaviour:
* There is no authentication: no mechanism is offered, any that is named is refused with
  UNSUPPORTED_SASL_MECHANISM, and the connection stays open.

Version notes: both versions are served alike.
"""

from kafscale.broker.context import RequestContext
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(_context: RequestContext, _request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM)
