"""`PendingResponse`: what a connection keeps of a request until its response is complete.

Invariant: a request sees the effects of all earlier ones of its connection. `is_exclusive` says
which requests all later ones wait for, and `must_wait` which wait for earlier appends.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.route import Parts, VersionedApi
from kafscale.protocol.codec.wire import Message
from kafscale.protocol.messages.delete_records import DELETE_RECORDS
from kafscale.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from kafscale.protocol.messages.list_offsets import LIST_OFFSETS
from kafscale.protocol.messages.offset_for_leader_epoch import OFFSET_FOR_LEADER_EPOCH
from kafscale.protocol.messages.produce import PRODUCE

_OFFSET_KEYS: Final = frozenset(
    api.key.to_bytes(2, "big")
    for api in (LIST_OFFSETS, DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_PRODUCERS)
)
"""Requests that depend on the end of a log, so that they wait for earlier produce requests."""


class PendingResponse:
    """A response that is not complete yet; `notify` is called once it is."""

    __slots__ = ("done", "notify", "parts")

    def __init__(self) -> None:
        self.done = False
        self.parts: Parts | None = None
        """None closes the connection."""
        self.notify: Callable[[], None] = _ignore

    @property
    def is_exclusive(self) -> bool:
        """Whether later requests of the connection wait for it."""
        return False

    @property
    def is_append(self) -> bool:
        """Whether it advances the end of a log."""
        return False

    def client_disconnected(self) -> None:
        """Drop the response, because its client has disconnected."""
        self.notify = _ignore

    def finish(self, parts: Parts | None) -> None:
        self.parts = parts
        self.done = True
        self.notify()


class InFlightRequest(PendingResponse):
    """A request that is being served, and its response."""

    __slots__ = ("context", "deadline", "future", "is_abandoned", "request", "versioned_api")

    def __init__(
        self,
        versioned_api: VersionedApi,
        context: RequestContext,
        request: Message,
        future: asyncio.Future[Any],
        deadline: float,
    ) -> None:
        super().__init__()
        self.versioned_api = versioned_api
        self.context = context
        self.request = request
        self.future = future
        self.deadline = deadline
        self.is_abandoned = False
        """True if the client has disconnected."""

    @property
    def is_exclusive(self) -> bool:
        return not self.versioned_api.route.is_pipelined

    @property
    def is_append(self) -> bool:
        return self.versioned_api.api is PRODUCE

    def client_disconnected(self) -> None:
        """Cancel a request that only waits; let any other finish without a response."""
        super().client_disconnected()
        self.is_abandoned = True
        if self.versioned_api.route.cancel_on_disconnect:
            self.future.cancel()


def must_wait(frame: memoryview, earlier: Sequence[Parts | PendingResponse]) -> bool:
    """Whether a request depends on what an earlier one of its connection appends."""
    return (
        bool(earlier)
        and bytes(frame[:2]) in _OFFSET_KEYS
        and any(
            isinstance(each, PendingResponse) and each.is_append and not each.done
            for each in earlier
        )
    )


def _ignore() -> None:
    """For responses whose client has disconnected."""
