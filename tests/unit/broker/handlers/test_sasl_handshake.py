"""SaslHandshake on a listener without SASL."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from unit.broker.in_memory_broker import run_with_broker


@pytest.mark.parametrize("version", SASL_HANDSHAKE.versions)
def test_no_mechanism_is_enabled(version):
    async def body(broker):
        response = await broker.ask(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), version)

        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == []

    run_with_broker(body)
