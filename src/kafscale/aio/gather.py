"""`gather_or_cancel`: runs coroutines concurrently; the first failure cancels the others.

Unlike `asyncio.gather`, it leaves no task running after a failure: the others are cancelled and
awaited before the error is raised.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

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
