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
    """Call a function for each item, at most `limit` at a time; return the results in order.

    No turn on the event loop grows with the number of items: there are `limit` tasks, and each
    gives way after every call.
    """
    numbered = enumerate(items)
    results: dict[int, Result] = {}

    async def call_next() -> None:
        for number, item in numbered:
            results[number] = await function(item)
            await asyncio.sleep(0)

    await gather_or_cancel(call_next() for _ in range(limit))
    return [results[number] for number in range(len(results))]
