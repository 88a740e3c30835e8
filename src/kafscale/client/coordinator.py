"""The coordinator of a group or of a transactional id: found on first use, and after it has moved.

Requests are retried, at the new coordinator, while it moves or loads. If the first connection to a
coordinator fails, the request fails at once. The coordinator has its own connection, because
brokers respond to the requests of a connection in order: fetches would wait behind a JoinGroup that
waits for other members.
"""

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import Any, Final, Self, TypeVar

from kafscale.client.client import Client, advertised_address_error
from kafscale.client.connection import Connection
from kafscale.client.errors import BrokerResponseError, Pause, UnreachableError, check, retry
from kafscale.errors import KafscaleError
from kafscale.net.address import Address
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest

Result = TypeVar("Result")

COORDINATOR_MOVED_ERRORS: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class CoordinatorKind(IntEnum):
    """What a coordinator coordinates, as FindCoordinator numbers it."""

    GROUP = 0
    TRANSACTION = 1


_SUBJECTS: Final = {CoordinatorKind.GROUP: "group", CoordinatorKind.TRANSACTION: "transactional id"}


class Coordinator:
    """The coordinator of one group or transactional id. An asynchronous context manager."""

    def __init__(
        self,
        client: Client,
        key: str,
        kind: CoordinatorKind = CoordinatorKind.GROUP,
        *,
        connect: Callable[[Address], Awaitable[Connection]] | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self.key = key
        self.kind = kind
        self.node_id = -1
        self._client = client
        self._connect = connect or client.connect
        self._pause = pause
        self._connection: Connection | None = None
        self._was_reached = False
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._disconnect()

    @property
    def group_id(self) -> str:
        """The id of the group that is coordinated."""
        assert self.kind is CoordinatorKind.GROUP
        return self.key

    @property
    def subject(self) -> str:
        """What is coordinated, for messages."""
        return f"{_SUBJECTS[self.kind]} {self.key}"

    @property
    def address(self) -> Address | None:
        """The address of the coordinator, while connected."""
        return None if self._connection is None else self._connection.address

    async def serves(self, api: Api[Any, Any]) -> bool:
        """Whether the coordinator supports this API."""
        return (await self._with_retries(self._connected)).serves(api)

    async def feature_level(self, name: str) -> int:
        """The finalized level of a feature of the cluster; 0 if it has none."""
        return (await self._with_retries(self._connected)).feature_level(name)

    async def ask(
        self,
        api: Api[Request, Response],
        request: Request,
        code_of: Callable[[Response], int],
        *,
        wait_seconds: float = 0.0,
        version_max: int | None = None,
    ) -> Response:
        """Send a request to the coordinator; `code_of` returns the error code of a response.

        Errors other than those of a moved or loading coordinator are returned to the caller.
        """

        async def once() -> Response:
            connection = await self._connected()
            response = await connection.ask(
                api, request, wait_seconds=wait_seconds, version_max=version_max
            )
            if (code := code_of(response)) in COORDINATOR_MOVED_ERRORS:
                raise BrokerResponseError(self.subject, code)
            return response

        return await self._with_retries(once)

    async def _with_retries(self, task: Callable[[], Awaitable[Result]]) -> Result:
        """Run a task with retries."""

        async def once() -> Result:
            try:
                return await task()
            except (BrokerResponseError, UnreachableError, asyncio.CancelledError):
                # Responses to later requests would wait behind the response to this one.
                self._disconnect()
                raise

        return await retry(once, self._is_retriable, self._pause)

    def _is_retriable(self, error: KafscaleError) -> bool:
        if isinstance(error, BrokerResponseError):
            return error.error_code in COORDINATOR_MOVED_ERRORS
        return self._was_reached and isinstance(error, UnreachableError)

    async def _connected(self) -> Connection:
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                self.node_id, address = await self._find()
                try:
                    self._connection = await self._connect(address)
                except UnreachableError as error:
                    raise advertised_address_error(self.node_id, address, error) from None
                self._was_reached = True
            return self._connection

    async def _find(self) -> tuple[int, Address]:
        connection = await self._client.any_broker()
        request = FindCoordinatorRequest(key=self.key, key_type=self.kind, keys=[self.key])
        response = await connection.ask(FIND_COORDINATOR, request)
        # Before v4, the response is about one key, in top-level fields.
        coordinator = response.coordinators[0] if response.coordinators else response
        check(self.subject, coordinator.error_code, coordinator.error_message)
        return coordinator.node_id, Address(coordinator.host, coordinator.port)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
