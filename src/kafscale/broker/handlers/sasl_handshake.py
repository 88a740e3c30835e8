"""SaslHandshake: v0-1.

Behaviour:
* The client names a mechanism. One that is not offered, which is every one while the listener asks
  nobody to log in, is refused with UNSUPPORTED_SASL_MECHANISM and those that are; the connection
  stays open, so that the client may choose another.

Version notes:
* v0: the tokens that follow are bare. v1: they come in SaslAuthenticate.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError, UnsupportedMechanismError
from kafscale.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def handle(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    login = context.client.sasl_session
    if login is None:
        raise UnsupportedMechanismError("nobody has to log in at this listener")
    login.handshake(context.client, request.mechanism, context.version)
    return SaslHandshakeResponse(mechanisms=list(login.enabled_mechanisms))


def error_response(
    context: RequestContext, _request: SaslHandshakeRequest, error: KafscaleError
) -> SaslHandshakeResponse:
    login = context.client.sasl_session
    offered = list(login.enabled_mechanisms) if login is not None else []
    return SaslHandshakeResponse(error_code=error.code, mechanisms=offered)
