"""Retries with exponential backoff, up to a maximum number."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kafscale.aio.backoff import Backoff
from kafscale.client.errors import is_retriable
from kafscale.errors import KafscaleError

RETRIES_COUNT_MAX: Final = 20
RETRY_SECONDS_MAX: Final = 2.0

Result = TypeVar("Result")
Pause = Callable[[float], Awaitable[None]]


async def retry(
    task: Callable[[], Awaitable[Result]],
    should_retry: Callable[[KafscaleError], bool] = is_retriable,
    pause: Pause = asyncio.sleep,
) -> Result:
    """Run a task until it succeeds; raise its error if it is not retriable or persists."""
    backoff = Backoff(max_seconds=RETRY_SECONDS_MAX)
    while True:
        try:
            return await task()
        except KafscaleError as error:
            if backoff.tries == RETRIES_COUNT_MAX or not should_retry(error):
                raise
        await pause(backoff.next_seconds())
