"""SaslHandshake: v0-1.

Behaviour:
* The client names a mechanism. One that the listener does not enable, which is every one without
  SASL, is refused with UNSUPPORTED_SASL_MECHANISM and the enabled ones; the connection stays open,
  so that the client may choose another.
* After failed logins of the address, the response is held for a while, and with it all later
  requests of the connection; if it would have to wait too long for its turn, the connection is
  closed.

Version notes:
* v0: the following tokens have no request header. v1: they are sent in SaslAuthenticate.
"""

from collections.abc import Awaitable

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError, UnsupportedMechanismError
from kafscale.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(
    context: RequestContext, request: SaslHandshakeRequest
) -> SaslHandshakeResponse | Awaitable[SaslHandshakeResponse]:
    session = context.client.sasl_session
    if session is None:
        raise UnsupportedMechanismError("the listener does not use SASL")
    session.handshake(context.client, request.mechanism, context.version)
    response = SaslHandshakeResponse(mechanisms=list(session.enabled_mechanisms))
    return session.held(response)


def error_response(
    context: RequestContext, _request: SaslHandshakeRequest, error: KafscaleError
) -> SaslHandshakeResponse:
    session = context.client.sasl_session
    mechanisms = list(session.enabled_mechanisms) if session is not None else []
    return SaslHandshakeResponse(error_code=error.code, mechanisms=mechanisms)
