"""Runs what a command asks of the control plane, from the options of its line to its result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kafscale.admin.cluster.control_client import ClusterControlClient
from kafscale.cli.connection.control_plane import chosen, encryption

Result = TypeVar("Result")


def run(control: str, task: Callable[[ClusterControlClient], Awaitable[Result]]) -> Result:
    """What a task gets done with a cluster."""

    async def connected() -> Result:
        async with ClusterControlClient(addresses, encryption()) as cluster:
            return await task(cluster)

    addresses = chosen(control)
    return asyncio.run(connected())
