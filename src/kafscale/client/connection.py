"""One connection to one broker: requests out, answers in, matched by their numbers.

The laws: a request is written in the highest version that both sides know; every wait for an answer
ends, with the answer or with an error that names the broker; when the connection is lost, all that
wait on it are told. Who has logged in does so again, before the next request, in good time before
the broker would end the session (KIP-368); requests go out in the order in which they were asked.
Which broker to ask what is left to `cluster`.
"""

import asyncio
from math import inf
from random import SystemRandom
from typing import Any, Final, Self, cast

from kafscale import __version__
from kafscale.client import reasons
from kafscale.client.errors import UnreachableError, check
from kafscale.client.sasl import log_in
from kafscale.client.security import PLAINTEXT, Security
from kafscale.errors import KafscaleError, ProtocolError, UnknownApiError
from kafscale.net.host_port import Address
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
ANSWER_SECONDS_MAX: Final = 30.0
CLOSE_SECONDS_MAX: Final = 1.0
SESSION_SHARE: Final = 0.85
"""The part of a session after which to log in again, as Kafka's clients do."""


class Connection(asyncio.BufferedProtocol):
    """A connection that is open until it is closed from either side."""

    def __init__(self, address: Address, security: Security = PLAINTEXT) -> None:
        self.address = address
        self._security = security
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._correlation_id = 0
        self._answer_count = 0
        self._versions: dict[int, range] = {}
        self._writable = asyncio.Event()
        self._ended = asyncio.Event()
        self._turn = asyncio.Lock()
        """Held to write a request, and for as long as it takes to log in again."""
        self._login_due = inf

    @classmethod
    async def open(cls, address: Address, security: Security = PLAINTEXT) -> Self:
        """Connect, learn what the broker speaks, and show it who we are."""
        connection = cls(address, security)
        loop = asyncio.get_running_loop()
        encryption = security.context()
        try:
            async with asyncio.timeout(CONNECT_SECONDS_MAX):
                await loop.create_connection(
                    lambda: connection, address.host, address.port, ssl=encryption
                )
        except OSError as error:
            raise reasons.not_connected(address, security, error, CONNECT_SECONDS_MAX) from None
        try:
            await connection._negotiate()
            if security.authenticates:
                await connection._log_in()
        except BaseException:
            if connection._transport is not None:
                connection._transport.abort()  # Nobody waits for a farewell.
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it is left."""
        return self._ended.is_set()

    def serves(self, api: Api[Any, Any]) -> bool:
        return bool(self._shared(api))

    async def ask(
        self,
        api: Api[Request, Response],
        request: Request,
        *,
        wait_seconds: float = 0.0,
        version_max: int | None = None,
    ) -> Response:
        """The answer to a request; `wait_seconds` is how long it lets the broker wait.

        `version_max` is for whoever cannot use what later versions have changed.
        """
        version = self._version(api, version_max)
        async with self._turn:
            await self._stay_logged_in()
            number = self._send(api, version, request)
        answer = await self._answer(api, number, wait_seconds)
        return self._decode(api, version, answer)

    async def tell(self, api: Api[Request, Any], request: Request) -> None:
        """Send a request that is not answered, once the connection has room for it."""
        await self._writable.wait()
        async with self._turn:
            await self._stay_logged_in()
            self._write(api, self._version(api), request)

    def close(self) -> None:
        """Close, when all that was sent has left."""
        if self._transport is not None:
            self._transport.close()

    async def end(self) -> None:
        """Close, and return when that is done: with TLS, both sides say that it was meant."""
        if self._transport is None:
            return
        self._transport.close()
        try:
            async with asyncio.timeout(CLOSE_SECONDS_MAX):
                await self._ended.wait()
        except TimeoutError:
            self._transport.abort()

    # --- what the event loop calls ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not asserted: transports of uvloop are none of asyncio's classes.
        self._transport = cast("asyncio.Transport", transport)
        self._writable.set()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        return self._reader.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            answers = self._reader.received(nbytes)
        except ProtocolError as error:
            problem = reasons.not_kafka(self.address, self._security, error, self._answer_count)
            self._lose(problem)
            return
        self._answer_count += len(answers)
        for answer in answers:
            number = CORRELATION.unpack_from(answer)[0] if len(answer) >= CORRELATION.size else None
            future = self._waiting.pop(number, None) if number is not None else None
            if future is not None and not future.done():
                future.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()
        self._lose(reasons.lost(self.address, self._security, exc, self._answer_count))

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # --- inside -------------------------------------------------------------------------------

    async def _negotiate(self) -> None:
        version = API_VERSIONS.version_max
        request = ApiVersionsRequest(
            client_software_name=CLIENT_ID, client_software_version=__version__
        )
        answer = await self._answer(API_VERSIONS, self._send(API_VERSIONS, version, request))
        start = CORRELATION.size
        if int.from_bytes(answer[start : start + 2], "big") == ErrorCode.UNSUPPORTED_VERSION:
            # Answered in v0, with the versions that the broker does know (KIP-511).
            version = 0
        ranges = self._decode(API_VERSIONS, version, answer)
        if version:
            check(f"the broker at {self.address}", ranges.error_code)
        self._versions = {
            each.key: range(each.version_min, each.version_max + 1) for each in ranges.apis
        }

    async def _log_in(self) -> None:
        began = asyncio.get_running_loop().time()
        broker = f"the broker at {self.address}"
        lifetime_ms = await log_in(self._ask_at_once, broker, self._security, SystemRandom())
        self._login_due = began + lifetime_ms / 1000 * SESSION_SHARE if lifetime_ms > 0 else inf

    async def _stay_logged_in(self) -> None:
        if asyncio.get_running_loop().time() < self._login_due or not self.is_open:
            return
        try:
            await self._log_in()
        except BaseException:
            self.close()  # In the middle of a login, nothing else is answered.
            raise

    async def _ask_at_once(self, api: Api[Request, Response], request: Request, /) -> Response:
        version = self._version(api)
        number = self._send(api, version, request)
        return self._decode(api, version, await self._answer(api, number))

    def _shared(self, api: Api[Any, Any], version_max: int | None = None) -> range:
        """The versions of an API that both sides know."""
        theirs = self._versions.get(api.key, range(0))
        highest = api.version_max if version_max is None else version_max
        return range(max(api.version_min, theirs.start), min(highest + 1, theirs.stop))

    def _version(self, api: Api[Any, Any], version_max: int | None = None) -> int:
        shared = self._shared(api, version_max)
        if not shared:
            highest = api.version_max if version_max is None else version_max
            raise UnknownApiError(
                f"the broker at {self.address} does not serve {api.name}"
                f" in a version between {api.version_min} and {highest}"
            )
        return shared[-1]

    def _send(self, api: Api[Request, Any], version: int, request: Request) -> int:
        """Write a request that is answered; the number to wait for."""
        number = self._write(api, version, request)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return number

    async def _answer(
        self, api: Api[Any, Any], number: int, wait_seconds: float = 0.0
    ) -> memoryview:
        limit_seconds = ANSWER_SECONDS_MAX + wait_seconds
        try:
            async with asyncio.timeout(limit_seconds):
                return await self._waiting[number]
        except TimeoutError:
            # Whatever is still answered here would be an answer to what nobody asks any more.
            self.close()
            raise UnreachableError(
                f"the broker at {self.address} did not answer {api.name}"
                f" within {limit_seconds:.0f} s"
            ) from None
        finally:
            self._waiting.pop(number, None)

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

    def _decode(self, api: Api[Any, Response], version: int, answer: memoryview) -> Response:
        _, position = decode_response_header(answer, api.response_header_version(version))
        return api.response_codec(version).decode(answer[position:])

    def _lose(self, error: KafscaleError) -> None:
        self._writable.set()  # Whoever waits to write shall find out.
        self.close()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()
