"""SaslAuthenticate: v0-2.

Behaviour:
* One token of the exchange that SaslHandshake has begun; ILLEGAL_SASL_STATE without one.
* A failure is answered with SASL_AUTHENTICATION_FAILED, after a delay that grows with every failure
  of the same address, and the connection is closed.
* After failures for a user, the response to every attempt for it is held for a while.

Version notes:
* v1+: the session lifetime; the client may reauthenticate on the same connection (KIP-368).
"""

import asyncio
from collections.abc import Awaitable

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import AuthenticationError, IllegalSaslStateError
from kafscale.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def handle(
    context: RequestContext, request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse | Awaitable[SaslAuthenticateResponse]:
    session = context.client.sasl_session
    if session is None:
        raise IllegalSaslStateError("the listener does not use SASL")
    try:
        result = session.authenticate(context.client, bytes(request.token))
    except AuthenticationError as error:
        return _fail_later(str(error), session.delay_ms or 0)
    response = SaslAuthenticateResponse(
        error_message=None, token=result.token, session_lifetime_ms=result.session_lifetime_ms
    )
    return session.held(response)


async def _fail_later(reason: str, delay_ms: int) -> SaslAuthenticateResponse:
    await asyncio.sleep(delay_ms / 1000)
    raise AuthenticationError(reason)
