"""SaslHandshake: there is nothing to agree on, and that is no reason to hang up."""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from unit.broker.handlers.serving import serve


@pytest.mark.parametrize("version", SASL_HANDSHAKE.versions)
def test_no_mechanism_is_offered(version):
    async def body(broker):
        response = await broker.ask(SASL_HANDSHAKE, SaslHandshakeRequest("PLAIN"), version)

        assert response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
        assert response.mechanisms == []

    serve(body)
