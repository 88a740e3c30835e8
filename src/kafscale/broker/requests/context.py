"""Who asks, and what the answer may be made with: what a handler gets besides the request.

The law: a handler touches only what its `RequestContext` offers; it knows no sockets and no frames.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from kafscale.broker.network.listener_config import Listener
from kafscale.broker.security.denials import denial
from kafscale.metadata.access.model import CLUSTER_NAME, Operation, ResourceType
from kafscale.protocol.api import Api
from kafscale.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:  # Rooms may know who asks; that must not make them part of a circle.
    from kafscale.broker.security.sasl_login import Login
    from kafscale.broker.services import Services

_LISTENER = Listener()


class ClientInfo(msgspec.Struct):
    """One connection, as handlers know it."""

    host: str
    port: int
    served_host: str = ""
    """The address of ours at which the client has come; so is the port."""
    served_port: int = 0
    broker_host: str = ""
    """The address at which the client has reached us, and will reach us again."""
    broker_port: int = 0
    listener: Listener = _LISTENER
    """The one at which the client has come."""
    identity: Principal = ANONYMOUS
    """Who the client is, as far as it has shown it; its `client.id` counts for nothing."""
    login: "Login | None" = None
    """Where the client stands that has to log in; None at a listener that asks nobody to."""
    is_leaving: bool = False
    """Whether the connection is to be closed when what was asked is answered."""
    throttled_ms: int = 0
    """For how long the connection is to be left alone, as its quotas say."""
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
    request_bytes: int = 0
    """How large the request is, header included."""
    busy_seconds: float = 0.0
    """How long the event loop was busy with the request before it had to wait, if it had to."""

    def may(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        quiet: bool = False,
    ) -> bool:
        """Whether the client may do this; `quiet` where a no is an everyday answer, and no denial.

        To be asked once for each thing that a request names, by the table in `permissions`.
        """
        access = self.broker.access
        return access is None or access.allows(self, operation, resource_type, name, quiet=quiet)

    def sees(self, resource_type: ResourceType, name: str) -> bool:
        """Whether something is shown to the client where it did not name it itself."""
        return self.may(Operation.DESCRIBE, resource_type, name, quiet=True)

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there is, or could be, a resource of that type that the client may do this to."""
        access = self.broker.access
        return access is None or access.allows_any(self, operation, resource_type)

    def demand(
        self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> None:
        """Raise what is told to somebody who may not."""
        if not self.may(operation, resource_type, name):
            raise denial(resource_type, name)
