"""A connection that has authenticated."""

import asyncio
import ssl
from typing import Self

from bench.broker_connection import BrokerConnection
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest


class SaslConnection(BrokerConnection):
    """A connection that is authenticated by PLAIN, over TLS if there is a context."""

    def __init__(self) -> None:
        super().__init__()
        self._closed = asyncio.Event()

    @classmethod
    async def log_in(
        cls, port: int, user: str, password: str, tls: ssl.SSLContext | None = None
    ) -> Self:
        _, connection = await asyncio.get_running_loop().create_connection(
            cls, "127.0.0.1", port, ssl=tls, server_hostname="localhost" if tls else None
        )
        offered = await connection.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
        assert offered.error_code == 0
        token = f"\0{user}\0{password}".encode()
        response = await connection.ask(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(token))
        assert response.error_code == 0, response.error_message
        return connection

    async def close_and_wait(self) -> None:
        """Close, and wait until the TLS shutdown is complete."""
        self.close()
        await self._closed.wait()

    def connection_lost(self, error: Exception | None) -> None:
        self._closed.set()
        super().connection_lost(error)
