"""A blocking client, for the drivers and tasks of Spark jobs.

It runs an event loop in a thread of its own, because notebooks already have a running loop. `close`
cancels all tasks and ends the thread.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from kafscale.client.client import Client
from kafscale.client.security import PLAINTEXT, Security
from kafscale.errors import InvalidRequestError
from kafscale.net.address import Address, parse

_Result = TypeVar("_Result")


class BlockingClient:
    """A client, its loop and its thread."""

    def __init__(self, bootstrap: Sequence[Address], security: Security = PLAINTEXT) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="blocking client", daemon=True
        )
        self._thread.start()
        self._client = self._wait(_create_client(bootstrap, security))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Callable[[Client], Coroutine[Any, Any, _Result]]) -> _Result:
        """Run a coroutine that uses the client, and wait for its result."""
        return self._wait(work(self._client))

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._wait(_close(self._client))
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # The caller was interrupted.
            raise


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse a comma-separated list of brokers.

    >>> [str(each) for each in parse_addresses("broker-0:19092, broker-1")]
    ['broker-0:19092', 'broker-1:9092']
    """
    try:
        parsed = tuple(parse(name.strip()) for name in text.split(",") if name.strip())
    except ValueError as error:
        raise InvalidRequestError(str(error)) from None
    if not parsed:
        raise InvalidRequestError("no broker is named; expected host:port")
    return parsed


async def _create_client(bootstrap: Sequence[Address], security: Security) -> Client:
    return Client(bootstrap, security)


async def _close(client: Client) -> None:
    """Cancel all other tasks, then close the connections."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await client.__aexit__()
