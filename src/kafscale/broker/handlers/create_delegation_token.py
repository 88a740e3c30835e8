"""CreateDelegationToken: v1-3.

Behaviour: refused, see `shared.delegation_tokens`. Requires no permission, as nothing is created.

Version notes: all versions behave alike.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import delegation_tokens
from kafscale.broker.shared.delegation_tokens import NO_TIMESTAMP
from kafscale.errors import KafscaleError
from kafscale.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


def handle(
    context: RequestContext, _request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    delegation_tokens.refuse(context)


def error_response(
    context: RequestContext, request: CreateDelegationTokenRequest, error: KafscaleError
) -> CreateDelegationTokenResponse:
    """The error, with the owner and the requester as in Kafka."""
    requester_type, _, requester = context.client.principal.full_name.partition(":")
    return CreateDelegationTokenResponse(
        error_code=error.code,
        principal_type=request.owner_principal_type or requester_type,
        principal_name=request.owner_principal_name or requester,
        requester_principal_type=requester_type,
        requester_principal_name=requester,
        issue_timestamp_ms=NO_TIMESTAMP,
        expiry_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=NO_TIMESTAMP,
    )
