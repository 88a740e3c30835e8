"""Errors of the client, and retries of what failed with one that is retriable.

KafscaleError
├── UnreachableError           no broker is reachable, or the connection was lost before a response
├── BrokerResponseError        a broker responded with an error; `error_code` is its code
│   └── ProducerFencedError    another producer uses the transactional id now; this one must stop
└── AbortableTransactionError  the transaction failed: abort it, and then begin another
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from kafscale.aio.backoff import Backoff
from kafscale.errors import KafscaleError
from kafscale.protocol.error_codes import ErrorCode


class UnreachableError(KafscaleError):
    """A broker is unreachable, or closed the connection before it responded."""


class BrokerResponseError(KafscaleError):
    """A broker responded with an error code."""

    def __init__(
        self, subject: str, code: int, message: str | None = None, *, hint: str = ""
    ) -> None:
        self.error_code = ErrorCode.of(code)
        self.message_without_hint = (
            f"{subject}: {message or self.error_code.message} ({self.error_code.name})"
        )
        """For the console and MCP: hints name commands of the command line."""
        text = self.message_without_hint
        super().__init__(f"{text}; {hint}" if hint else text)

    def with_hint(self, hint: str) -> "BrokerResponseError":
        """A copy of the error with a hint."""
        copy = BrokerResponseError("", self.error_code)
        copy.message_without_hint = self.message_without_hint
        copy.args = (f"{self.message_without_hint}; {hint}",)
        return copy


class ProducerFencedError(BrokerResponseError):
    """Another producer with the same transactional id has taken over."""


class AbortableTransactionError(KafscaleError):
    """The transaction cannot be committed; its `__cause__` is the first error.

    The producer remains usable after the transaction was aborted.
    """


def check(subject: str, code: int, message: str | None = None, *, hint: str = "") -> None:
    """Raise `BrokerResponseError` about `subject` unless the code is NONE."""
    if code != ErrorCode.NONE:
        raise BrokerResponseError(subject, code, message, hint=hint)


def is_retriable(error: KafscaleError) -> bool:
    """Whether the same request may succeed later."""
    if isinstance(error, BrokerResponseError):
        return error.error_code.retriable
    return isinstance(error, UnreachableError)


RETRIES_COUNT_MAX: Final = 20
FIRST_PAUSE_SECONDS: Final = 0.1
RETRY_SECONDS_MAX: Final = 2.0

Result = TypeVar("Result")
Pause = Callable[[float], Awaitable[None]]


async def retry(
    task: Callable[[], Awaitable[Result]],
    should_retry: Callable[[KafscaleError], bool] = is_retriable,
    pause: Pause = asyncio.sleep,
    *,
    first_seconds: float = FIRST_PAUSE_SECONDS,
) -> Result:
    """Run a task until it succeeds; raise its error if it is not retriable or persists."""
    backoff = Backoff(first_seconds=first_seconds, max_seconds=RETRY_SECONDS_MAX)
    while True:
        try:
            return await task()
        except KafscaleError as error:
            if backoff.tries == RETRIES_COUNT_MAX or not should_retry(error):
                raise
        await pause(backoff.next_seconds())
