"""A fake broker that authenticates clients, and then responds to Metadata.

    async with AuthenticatingBroker(Sasl(...), context=tls) as broker:
        connection = await Connection.open(broker.address, security)

It uses the SASL mechanisms of `kafscale.security`, and records the names of requested APIs.
"""

import asyncio
import ssl
from contextlib import suppress
from random import Random

from kafscale.config.sections.security import Sasl
from kafscale.errors import AuthenticationError
from kafscale.net.address import Address
from kafscale.protocol.frame import frame
from kafscale.protocol.header import decode_request_header, encode_response_header
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionRange,
    ApiVersionsResponse,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataResponse
from kafscale.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateResponse
from kafscale.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeResponse
from kafscale.security.sasl.mechanisms import Mechanisms

APIS = {api.key: api for api in (API_VERSIONS, METADATA, SASL_HANDSHAKE, SASL_AUTHENTICATE)}
NOW_MS = 1_750_000_000_000


class AuthenticatingBroker:
    """Requires SASL if it has mechanisms, and TLS if it has a context."""

    def __init__(
        self,
        sasl: Sasl | None = None,
        *,
        context: ssl.SSLContext | None = None,
        credentials=lambda _user, _mechanism: None,
        session_ms: int = 0,
        handshake_code: int = 33,
        host: str = "127.0.0.1",
    ) -> None:
        self.requests: list[str] = []
        self.session_ms = session_ms
        self._mechanisms = Mechanisms(
            sasl or Sasl(), credentials, clock=lambda: NOW_MS, random=Random(1)
        )
        self._is_open = sasl is None
        self._context = context
        self._handshake_code = handshake_code
        self._host = host
        self._clients: set[asyncio.StreamWriter] = set()

    async def __aenter__(self):
        await self._mechanisms.start()
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._context)
        self.address = Address(self._host, self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for client in self._clients:
            client.transport.abort()
        await self._mechanisms.close()

    async def _serve(self, reader, writer):
        self._clients.add(writer)
        sasl_server, is_authenticated = None, self._is_open
        with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            while True:
                length = int.from_bytes(await reader.readexactly(4))
                if length > 2**20:
                    break  # Not Kafka.
                request = memoryview(await reader.readexactly(length))
                api = APIS[int.from_bytes(request[:2])]
                version = int.from_bytes(request[2:4])
                header, position = decode_request_header(
                    request, api.request_header_version(version)
                )
                message = api.request_codec(version).decode(request[position:])
                self.requests.append(api.name)
                if api is API_VERSIONS:
                    response = _versions()
                elif api is SASL_HANDSHAKE:
                    sasl_server, response = self._handshake(message.mechanism)
                elif api is SASL_AUTHENTICATE:
                    response, is_authenticated = self._authenticate(sasl_server, message.token)
                elif is_authenticated:
                    response = MetadataResponse(cluster_id="it")
                else:
                    break
                head = encode_response_header(
                    header.correlation_id, api.response_header_version(version)
                )
                writer.writelines(frame(head, api.response_codec(version).encode(response)))
                await writer.drain()
        writer.close()
        self._clients.discard(writer)

    def _handshake(self, mechanism):
        offered = list(self._mechanisms.offered("PLAINTEXT"))
        if mechanism in offered:
            return self._mechanisms.create_server(mechanism), SaslHandshakeResponse(
                mechanisms=offered
            )
        return None, SaslHandshakeResponse(error_code=self._handshake_code, mechanisms=offered)

    def _authenticate(self, sasl_server, token):
        try:
            result = sasl_server.evaluate_response(token)
        except AuthenticationError as error:
            return SaslAuthenticateResponse(error_code=58, error_message=str(error)), False
        response = SaslAuthenticateResponse(token=result.token, session_lifetime_ms=self.session_ms)
        return response, result.principal is not None


def _versions():
    return ApiVersionsResponse(
        apis=[ApiVersionRange(api.key, api.version_min, api.version_max) for api in APIS.values()]
    )
