"""An HTTP protocol that closes connections on which no request arrives in time.

Uvicorn closes connections that are idle between requests, but waits forever for the first request
and for the rest of the headers. Slow clients could otherwise take all connections.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS_MAX: Final = 20.0


class RequestTimeoutProtocol(H11Protocol):
    """HTTP/1.1 with a deadline for each request's headers."""

    seconds_max = REQUEST_SECONDS_MAX
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_idle:
            self._cancel_timer()
        elif self._deadline is None:  # More bytes of the same headers do not extend the deadline.
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        """True if no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def _start_timer(self) -> None:
        self._deadline = self.loop.call_later(self.seconds_max, self._on_timeout)

    def _cancel_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_timeout(self) -> None:
        self._deadline = None
        if self._is_idle:
            self.transport.close()
