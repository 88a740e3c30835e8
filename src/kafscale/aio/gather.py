"""Runs coroutines concurrently; the first failure cancels the others.

Unlike `asyncio.gather`, these functions leave no task running after a failure: the others are
cancelled and awaited before the error is raised.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


async def gather_or_cancel(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Return the results in order, or raise the first error."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def map_limited(
    function: Callable[[Item], Awaitable[Result]], items: Iterable[Item], limit: int
) -> list[Result]:
    """Call a function for each item, at most `limit` at a time; return the results in order."""
    slots = asyncio.Semaphore(limit)

    async def call(item: Item) -> Result:
        async with slots:
            return await function(item)

    return await gather_or_cancel(map(call, items))
