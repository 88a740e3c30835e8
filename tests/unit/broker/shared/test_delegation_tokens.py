"""The error code of requests about delegation tokens."""

import msgspec
import pytest

from kafscale.broker.network.listener_config import Listener, SecurityProtocol
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_delegation_token import (
    CREATE_DELEGATION_TOKEN,
    CreateDelegationTokenRequest,
)
from kafscale.security.principal import ANONYMOUS, Principal
from unit.broker.in_memory_broker import run_with_broker

ALICE = Principal("User:alice")
DISABLED = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


@pytest.mark.parametrize(
    ("protocol", "principal", "code"),
    [
        (SecurityProtocol.PLAINTEXT, ANONYMOUS, NOT_ALLOWED),
        (SecurityProtocol.SSL, ANONYMOUS, NOT_ALLOWED),
        (SecurityProtocol.SSL, ALICE, DISABLED),
        (SecurityProtocol.SASL_PLAINTEXT, ALICE, DISABLED),
        (SecurityProtocol.SASL_SSL, ALICE, DISABLED),
    ],
)
def test_code_depends_on_the_authentication(protocol, principal, code):
    async def body(broker):
        listener = Listener(protocol=protocol)
        client = msgspec.structs.replace(broker.client, listener=listener, principal=principal)
        request = CreateDelegationTokenRequest(None, None)
        response = await broker.ask(CREATE_DELEGATION_TOKEN, request, client=client)
        assert response.error_code == code
        assert f"{response.principal_type}:{response.principal_name}" == principal.full_name

    run_with_broker(body)
