"""Connections that are not waited for without an end: a request has to come within some time.

Uvicorn closes a connection that is idle between two requests; it waits forever for one that never
sends its first, or sends its headers a byte at a time. A thousand of those would take all places.
"""

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS_MAX: Final = 20.0


class ImpatientProtocol(H11Protocol):
    """HTTP for those who say what they want."""

    seconds_max = REQUEST_SECONDS_MAX
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_waiting:
            self._wait_no_more()
        elif self._deadline is None:  # More bytes of the same headers bring no more time.
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.seconds_max, self._give_up)

    def _wait_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self._is_waiting:
            self.transport.close()
