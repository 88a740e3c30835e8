"""RenewDelegationToken: v1-2.

Behaviour: refused, see `shared.delegation_tokens`. Requires no permission, as nothing changes.

Version notes: all versions behave alike.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import delegation_tokens
from kafscale.broker.shared.delegation_tokens import NO_TIMESTAMP
from kafscale.errors import KafscaleError
from kafscale.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


def handle(
    context: RequestContext, _request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    delegation_tokens.refuse(context)


def error_response(
    _context: RequestContext, _request: RenewDelegationTokenRequest, error: KafscaleError
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NO_TIMESTAMP)
