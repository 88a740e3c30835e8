"""Several things at once, of which either all succeed or none is left running.

Whoever fails to open one log of many must not leave the others half open behind: the first failure
cancels the rest, waits for them, and is raised as it is.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def gather_or_cancel(works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """The results in the order of the works, or the first failure."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
