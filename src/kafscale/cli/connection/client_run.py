"""Runs what a command asks of a cluster, from the options of its command line to its result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from kafscale.cli.connection.kafka import chosen, secured

if TYPE_CHECKING:
    from kafscale.client.client import Client

Result = TypeVar("Result")


def run(bootstrap: str, task: "Callable[[Client], Awaitable[Result]]") -> Result:
    """What a task gets done with a client."""

    async def connected() -> Result:
        async with client:
            return await task(client)

    client = client_of(bootstrap)
    return asyncio.run(connected())


def client_of(bootstrap: str) -> "Client":
    """A client of the brokers that the option names, or else the settings."""
    from kafscale.client.client import Client  # noqa: PLC0415 - messages are slow to load.

    return Client(chosen(bootstrap), secured())
