"""The broker that looks after a group: found when it is first needed, and again when it has moved.

The laws: a question is asked again, of whoever is the coordinator by then, while the answer is one
that passes by itself; a coordinator that was never reached is given up at once. It has a connection
of its own, because one connection is answered in order: behind a JoinGroup that waits for other
members, fetches would wait as well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self, TypeVar

from kafscale.client.client import Client, not_where_said
from kafscale.client.connection import Connection
from kafscale.client.errors import AnsweredError, UnreachableError, check
from kafscale.client.retry import Pause, retried
from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest

Result = TypeVar("Result")

MOVED: Final = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


class Coordinator:
    """The coordinator of one group, whichever broker that is. An asynchronous context manager."""

    def __init__(
        self,
        client: Client,
        group_id: str,
        *,
        connect: Callable[[Address], Awaitable[Connection]] | None = None,
        pause: Pause = asyncio.sleep,
    ) -> None:
        self.group_id = group_id
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
        self._forget()

    @property
    def address(self) -> Address | None:
        """Where it was found last."""
        return None if self._connection is None else self._connection.address

    async def serves(self, api: Api[Any, Any]) -> bool:
        """Whether the coordinator knows this API."""
        return (await self._patiently(self._connected)).serves(api)

    async def ask(
        self,
        api: Api[Request, Response],
        request: Request,
        code_of: Callable[[Response], int],
        *,
        wait_seconds: float = 0.0,
        version_max: int | None = None,
    ) -> Response:
        """The coordinator's answer; `code_of` says where in it an error stands.

        Errors that do not pass by waiting or by looking elsewhere are left to whoever asks.
        """

        async def once() -> Response:
            connection = await self._connected()
            response = await connection.ask(
                api, request, wait_seconds=wait_seconds, version_max=version_max
            )
            if (code := code_of(response)) in MOVED:
                raise AnsweredError(f"group {self.group_id}", code)
            return response

        return await self._patiently(once)

    async def _patiently(self, task: Callable[[], Awaitable[Result]]) -> Result:
        """Do it, again and again while what is in the way may go away."""

        async def once() -> Result:
            try:
                return await task()
            except (AnsweredError, UnreachableError, asyncio.CancelledError):
                # What is still on its way would be answered before all that is asked from now on.
                self._forget()
                raise

        return await retried(once, self._may_pass, self._pause)

    def _may_pass(self, error: KafscaleError) -> bool:
        if isinstance(error, AnsweredError):
            return error.answer in MOVED
        return self._was_reached and isinstance(error, UnreachableError)

    async def _connected(self) -> Connection:
        async with self._opening:
            if self._connection is None or not self._connection.is_open:
                self.node_id, address = await self._find()
                try:
                    self._connection = await self._connect(address)
                except UnreachableError as error:
                    raise not_where_said(self.node_id, address, error) from None
                self._was_reached = True
            return self._connection

    async def _find(self) -> tuple[int, Address]:
        connection = await self._client.any_broker()
        request = FindCoordinatorRequest(key=self.group_id, keys=[self.group_id])
        response = await connection.ask(FIND_COORDINATOR, request)
        # Before v4 the answer is about one key, and stands at its top.
        found = response.coordinators[0] if response.coordinators else response
        check(f"group {self.group_id}", found.error_code, found.error_message)
        return found.node_id, Address(found.host, found.port)

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
