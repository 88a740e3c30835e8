"""Ending what runs in the background, without losing what went wrong there."""

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """End them; if one has failed by itself, that is raised here."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
