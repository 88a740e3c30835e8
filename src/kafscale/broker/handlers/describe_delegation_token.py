"""DescribeDelegationToken: v1-3.

Behaviour: refused, see `shared.delegation_tokens`. Requires no permission, as there are no tokens.

Version notes: all versions behave alike.
"""

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.shared import delegation_tokens
from kafscale.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def handle(
    context: RequestContext, _request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    delegation_tokens.refuse(context)
