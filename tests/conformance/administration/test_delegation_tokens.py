"""Delegation tokens, which a client that has not authenticated may not ask for."""

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_delegation_token import (
    CREATE_DELEGATION_TOKEN,
    CreateDelegationTokenRequest,
    Renewer,
)
from kafscale.protocol.messages.describe_delegation_token import (
    DESCRIBE_DELEGATION_TOKEN,
    DescribeDelegationTokenRequest,
)
from kafscale.protocol.messages.expire_delegation_token import (
    EXPIRE_DELEGATION_TOKEN,
    ExpireDelegationTokenRequest,
)
from kafscale.protocol.messages.renew_delegation_token import (
    RENEW_DELEGATION_TOKEN,
    RenewDelegationTokenRequest,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

REQUESTS = [
    (CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(None, None, [Renewer("User", "b")], -1)),
    (CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest("User", "bob", [], 1000)),
    (RENEW_DELEGATION_TOKEN, RenewDelegationTokenRequest(b"hmac", 1000)),
    (EXPIRE_DELEGATION_TOKEN, ExpireDelegationTokenRequest(b"hmac", -1)),
    (DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest(None)),
    (DESCRIBE_DELEGATION_TOKEN, DescribeDelegationTokenRequest([])),
]


@pytest.mark.parametrize(("api", "request_"), REQUESTS, ids=lambda each: type(each).__name__)
def test_tokens_are_not_allowed(both, api, request_):
    for version in api.versions:
        response = both.call(api, version, request_)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
