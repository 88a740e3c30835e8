"""Retries with exponential backoff, up to a maximum number."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kafscale.client.errors import is_retriable
from kafscale.errors import KafscaleError

RETRIES_COUNT_MAX: Final = 20
RETRY_SECONDS_FIRST: Final = 0.1
RETRY_SECONDS_MAX: Final = 2.0

Result = TypeVar("Result")
Pause = Callable[[float], Awaitable[None]]


async def retry(
    task: Callable[[], Awaitable[Result]],
    should_retry: Callable[[KafscaleError], bool] = is_retriable,
    pause: Pause = asyncio.sleep,
) -> Result:
    """Run a task until it succeeds; raise its error if it is not retriable or persists."""
    failures = 0
    while True:
        try:
            return await task()
        except KafscaleError as error:
            failures += 1
            if failures > RETRIES_COUNT_MAX or not should_retry(error):
                raise
        await pause(backoff_seconds(failures))


def backoff_seconds(failures: int) -> float:
    """The pause after a number of consecutive failures.

    >>> [backoff_seconds(failures) for failures in (1, 2, 3, 20)]
    [0.1, 0.2, 0.4, 2.0]
    """
    return min(RETRY_SECONDS_FIRST * 2.0 ** (failures - 1), RETRY_SECONDS_MAX)
