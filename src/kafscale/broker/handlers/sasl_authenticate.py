"""SaslAuthenticate: v0-2.

Behaviour:
* One token of the exchange that SaslHandshake has begun; ILLEGAL_SASL_STATE where none has.
* What does not convince is answered with SASL_AUTHENTICATION_FAILED after a while that grows with
  every failure from the same address, and the connection is closed.

Version notes:
* v1+: how long the session lasts; the client may log in again on the same connection before.
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
    login = context.client.sasl_session
    if login is None:
        raise IllegalSaslStateError("nobody has to log in at this listener")
    try:
        passed = login.authenticate(context.client, bytes(request.token))
    except AuthenticationError as error:
        return _refused_later(str(error), login.delay_ms or 0)
    return SaslAuthenticateResponse(
        error_message=None, token=passed.token, session_lifetime_ms=passed.session_lifetime_ms
    )


async def _refused_later(reason: str, delay_ms: int) -> SaslAuthenticateResponse:
    await asyncio.sleep(delay_ms / 1000)
    raise AuthenticationError(reason)
