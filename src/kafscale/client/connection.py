"""A connection to one broker, which matches responses to requests by correlation id.

Invariants:
* A request is sent in the highest version that both sides support.
* Every wait for a response ends: with the response, or with an error that names the broker. When
  the connection is lost, all pending requests fail.
* Requests are sent in the order of the calls.
* The client reauthenticates before the next request if the session ends soon (KIP-368).
"""

import asyncio
from math import inf
from random import SystemRandom
from typing import Any, Final, Self, cast

from kafscale import __version__
from kafscale.client import connection_errors
from kafscale.client.errors import UnreachableError, check
from kafscale.client.sasl import authenticate
from kafscale.client.security import PLAINTEXT, Security
from kafscale.errors import KafscaleError, ProtocolError, UnknownApiError
from kafscale.net.address import Address
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.frame import FrameReader, frame
from kafscale.protocol.header import (
    CORRELATION,
    RequestHeader,
    decode_response_header,
    encode_request_header,
)
from kafscale.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest

CLIENT_ID: Final = "kafscale"
CONNECT_SECONDS_MAX: Final = 10.0
RESPONSE_SECONDS_MAX: Final = 30.0
CLOSE_SECONDS_MAX: Final = 1.0
SESSION_SHARE: Final = 0.85
"""The part of the session lifetime after which to reauthenticate, as Kafka's clients do."""


class Connection(asyncio.BufferedProtocol):
    """A connection, open until either side closes it."""

    def __init__(self, address: Address, security: Security = PLAINTEXT) -> None:
        self.address = address
        self._security = security
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._pending: dict[int, asyncio.Future[memoryview]] = {}
        self._correlation_id = 0
        self._response_count = 0
        self._versions: dict[int, range] = {}
        self._features: dict[str, int] = {}
        self._writable = asyncio.Event()
        self._closed = asyncio.Event()
        self._write_lock = asyncio.Lock()
        """Held while a request is written, and during a reauthentication."""
        self._reauthenticate_at = inf

    @classmethod
    async def open(cls, address: Address, security: Security = PLAINTEXT) -> Self:
        """Connect, negotiate API versions and authenticate."""
        connection = cls(address, security)
        loop = asyncio.get_running_loop()
        context = security.context()
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await loop.create_connection(
                    lambda: connection, address.host, address.port, ssl=context
                )
        except OSError as error:
            raise connection_errors.connect_error(
                address, security, error, CONNECT_SECONDS_MAX
            ) from None
        try:
            await connection._negotiate()
            if security.authenticates:
                await connection._authenticate()
        except BaseException:
            if connection._transport is not None:
                connection._transport.abort()  # No TLS close_notify is needed.
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_closed(self) -> bool:
        """Whether the transport is closed on both sides."""
        return self._closed.is_set()

    def serves(self, api: Api[Any, Any], version_min: int = 0) -> bool:
        """Whether both sides support the API, in this version or a later one."""
        common = self._common_versions(api)
        return bool(common) and common[-1] >= version_min

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature of the cluster (KIP-584); 0 if it has none."""
        return self._features.get(name, 0)

    async def ask(
        self,
        api: Api[Request, Response],
        request: Request,
        *,
        wait_seconds: float = 0.0,
        version_max: int | None = None,
    ) -> Response:
        """Send a request and return its response.

        `wait_seconds` is the time that the broker may wait before it responds. `version_max` limits
        the version, for callers that do not support changes of later versions.
        """
        version = self._version(api, version_max)
        async with self._write_lock:
            await self._reauthenticate_if_due()
            correlation_id = self._send(api, version, request)
        response = await self._response(api, correlation_id, wait_seconds)
        return self._decode(api, version, response)

    async def send_without_response(self, api: Api[Request, Any], request: Request) -> None:
        """Send a request that has no response (acks=0); wait while the send buffer is full."""
        await self._writable.wait()
        async with self._write_lock:
            await self._reauthenticate_if_due()
            self._write(api, self._version(api), request)

    def close(self) -> None:
        """Close after all written data was sent."""
        if self._transport is not None:
            self._transport.close()

    async def aclose(self) -> None:
        """Close, and wait until it is done; with TLS, for the close_notify of the broker."""
        if self._transport is None:
            return
        self._transport.close()
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await self._closed.wait()
        except TimeoutError:
            self._transport.abort()

    # --- asyncio.BufferedProtocol -------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, since the transports of uvloop are not subclasses of asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            responses = self._reader.received(nbytes)
        except ProtocolError as error:
            self._fail_pending(
                connection_errors.not_kafka_error(
                    self.address, self._security, error, self._response_count
                )
            )
            return
        self._response_count += len(responses)
        for response in responses:
            if len(response) < CORRELATION.size:
                continue
            future = self._pending.pop(CORRELATION.unpack_from(response)[0], None)
            if future is not None and not future.done():
                future.set_result(response)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed.set()
        self._fail_pending(
            connection_errors.disconnect_error(
                self.address, self._security, exc, self._response_count
            )
        )

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- requests and responses ---------------------------------------------------------------

    async def _negotiate(self) -> None:
        version = API_VERSIONS.version_max
        request = ApiVersionsRequest(
            client_software_name=CLIENT_ID, client_software_version=__version__
        )
        correlation_id = self._send(API_VERSIONS, version, request)
        response = await self._response(API_VERSIONS, correlation_id)
        start = CORRELATION.size
        if int.from_bytes(response[start : start + 2], "big") == ErrorCode.UNSUPPORTED_VERSION:
            # The response is in v0, with the versions that the broker supports (KIP-511).
            version = 0
        ranges = self._decode(API_VERSIONS, version, response)
        if version:
            check(f"the broker at {self.address}", ranges.error_code)
        self._versions = {
            each.key: range(each.version_min, each.version_max + 1) for each in ranges.apis
        }
        self._features = {each.name: each.version_max for each in ranges.finalized_features}

    async def _authenticate(self) -> None:
        began = asyncio.get_running_loop().time()
        broker = f"the broker at {self.address}"
        lifetime_ms = await authenticate(self._ask_unlocked, broker, self._security, SystemRandom())
        is_limited = lifetime_ms > 0
        self._reauthenticate_at = began + lifetime_ms / 1000 * SESSION_SHARE if is_limited else inf

    async def _reauthenticate_if_due(self) -> None:
        if asyncio.get_running_loop().time() < self._reauthenticate_at or not self.is_open:
            return
        try:
            await self._authenticate()
        except BaseException:
            self.close()  # The broker accepts no other requests during an authentication.
            raise

    async def _ask_unlocked(self, api: Api[Request, Response], request: Request, /) -> Response:
        version = self._version(api)
        correlation_id = self._send(api, version, request)
        return self._decode(api, version, await self._response(api, correlation_id))

    def _common_versions(self, api: Api[Any, Any], version_max: int | None = None) -> range:
        """The versions of an API that both sides support."""
        theirs = self._versions.get(api.key, range(0))
        highest = api.version_max if version_max is None else version_max
        return range(max(api.version_min, theirs.start), min(highest + 1, theirs.stop))

    def _version(self, api: Api[Any, Any], version_max: int | None = None) -> int:
        common = self._common_versions(api, version_max)
        if not common:
            highest = api.version_max if version_max is None else version_max
            raise UnknownApiError(
                f"the broker at {self.address} does not serve {api.name}"
                f" in a version between {api.version_min} and {highest}"
            )
        return common[-1]

    def _send(self, api: Api[Request, Any], version: int, request: Request) -> int:
        """Write a request that has a response; return its correlation id."""
        correlation_id = self._write(api, version, request)
        self._pending[correlation_id] = asyncio.get_running_loop().create_future()
        return correlation_id

    async def _response(
        self, api: Api[Any, Any], correlation_id: int, wait_seconds: float = 0.0
    ) -> memoryview:
        limit_seconds = RESPONSE_SECONDS_MAX + wait_seconds
        try:
            async with asyncio.timeout(limit_seconds):
                return await self._pending[correlation_id]
        except TimeoutError:
            # A late response would belong to no request.
            self.close()
            raise UnreachableError(
                f"the broker at {self.address} did not respond to {api.name}"
                f" within {limit_seconds:.0f} s"
            ) from None
        finally:
            self._pending.pop(correlation_id, None)

    def _write(self, api: Api[Request, Any], version: int, request: Request) -> int:
        if self._transport is None or self._transport.is_closing():
            raise UnreachableError(f"the connection to the broker at {self.address} is closed")
        self._correlation_id += 1
        header = encode_request_header(
            RequestHeader(api.key, version, self._correlation_id, CLIENT_ID),
            api.request_header_version(version),
        )
        self._transport.writelines(frame(header, api.request_codec(version).encode(request)))
        return self._correlation_id

    def _decode(self, api: Api[Any, Response], version: int, response: memoryview) -> Response:
        _, position = decode_response_header(response, api.response_header_version(version))
        return api.response_codec(version).decode(response[position:])

    def _fail_pending(self, error: KafscaleError) -> None:
        self._writable.set()  # Tasks that wait to write find the connection closed.
        self.close()
        for future in self._pending.values():
            if not future.done():
                future.set_exception(error)
        self._pending.clear()
