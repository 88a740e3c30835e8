"""Who asks, and what the answer may be made with: what a handler gets besides the request.

The law: a handler touches only what its `RequestContext` offers; it knows no sockets and no frames.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kafscale.protocol.api import Api

if TYPE_CHECKING:  # Rooms may know who asks; that must not make them part of a circle.
    from kafscale.broker.services import Services

ANONYMOUS: Final = "User:ANONYMOUS"


class ClientInfo(msgspec.Struct, gc=False):
    """One connection, as handlers know it."""

    host: str
    port: int
    served_host: str = ""
    """The address of ours at which the client has come; so is the port."""
    served_port: int = 0
    broker_host: str = ""
    """The address at which the client has reached us, and will reach us again."""
    broker_port: int = 0
    principal: str = ANONYMOUS
    software_name: str = ""
    """Told by clients that ask ApiVersions in v3 or later (KIP-511), empty before."""
    software_version: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Drain:
    """The broker's farewell: begins once, and wakes whatever only waits for more to come.

    A handler that waits (a fetch for records) watches it and answers with what it has.
    """

    __slots__ = ("_watchers", "begun")

    def __init__(self) -> None:
        self.begun = False
        self._watchers: set[Callable[[], object]] = set()

    def watch(self, wake: Callable[[], object]) -> None:
        """Call `wake` when the drain begins; at once, where it has begun."""
        if self.begun:
            wake()
        else:
            self._watchers.add(wake)

    def unwatch(self, wake: Callable[[], object]) -> None:
        self._watchers.discard(wake)

    def begin(self) -> None:
        self.begun = True
        watchers, self._watchers = self._watchers, set()
        for wake in watchers:
            wake()


class RequestContext(msgspec.Struct, gc=False):
    """One request's surroundings. Made for every request, so it holds references and no more."""

    client: ClientInfo
    client_id: str | None
    """The name that the client gives itself in the header of every request."""
    api: Api[Any, Any]
    version: int
    correlation_id: int
    received_ms: int
    """When the request came, in ms since 1970."""
    started: float
    """The same moment in seconds, by the clock that measures how long things take."""
    broker: "Services"
    drain: Drain

    @property
    def principal(self) -> str:
        return self.client.principal
