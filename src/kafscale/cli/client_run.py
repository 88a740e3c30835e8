"""Runs what a command asks of a cluster, from the options of its command line to its result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from kafscale.cli.client_address import chosen

if TYPE_CHECKING:
    from kafscale.client.cluster import Client

Result = TypeVar("Result")


def run(bootstrap: str, task: "Callable[[Client], Awaitable[Result]]") -> Result:
    """What a task gets done with a client."""
    from kafscale.client.cluster import Client  # noqa: PLC0415 - messages are slow to load.

    async def connected() -> Result:
        async with Client(addresses) as client:
            return await task(client)

    addresses = chosen(bootstrap)
    return asyncio.run(connected())
