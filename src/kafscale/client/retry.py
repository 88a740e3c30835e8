"""Trying again what may succeed later, with longer and longer pauses, but not for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kafscale.client.errors import may_pass
from kafscale.errors import KafscaleError

RETRIES_COUNT_MAX: Final = 20
RETRY_SECONDS_FIRST: Final = 0.1
RETRY_SECONDS_MAX: Final = 2.0

Result = TypeVar("Result")
Pause = Callable[[float], Awaitable[None]]


async def retried(
    task: Callable[[], Awaitable[Result]],
    is_worth_it: Callable[[KafscaleError], bool] = may_pass,
    pause: Pause = asyncio.sleep,
) -> Result:
    """What a task results in, sooner or later; or the error that does not go away."""
    failures = 0
    while True:
        try:
            return await task()
        except KafscaleError as error:
            failures += 1
            if failures > RETRIES_COUNT_MAX or not is_worth_it(error):
                raise
        await pause(pause_seconds(failures))


def pause_seconds(failures: int) -> float:
    """How long to wait after so many failures in a row.

    >>> [pause_seconds(failures) for failures in (1, 2, 3, 20)]
    [0.1, 0.2, 0.4, 2.0]
    """
    return min(RETRY_SECONDS_FIRST * 2.0 ** (failures - 1), RETRY_SECONDS_MAX)
