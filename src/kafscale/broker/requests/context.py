"""`RequestContext`: what a handler gets besides the request.

Invariant: a handler uses only what its `RequestContext` offers; it knows no sockets and no frames.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from kafscale.broker.network.listener_config import Listener
from kafscale.broker.security.permissions import authorization_error
from kafscale.broker.shared.refused_batches import RefusedBatches
from kafscale.metadata.access.model import CLUSTER_NAME, Operation, ResourceType
from kafscale.net.address import Address
from kafscale.protocol.api import Api
from kafscale.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:  # These modules use ClientInfo and RequestContext: avoid an import cycle.
    from kafscale.broker.security.sasl_login import SaslSession
    from kafscale.broker.services import Services

_LISTENER = Listener()


class ClientInfo(msgspec.Struct):
    """One connection, as handlers see it."""

    host: str
    port: int
    local_host: str = ""
    """The local address that the client connected to."""
    local_port: int = 0
    listener: Listener = _LISTENER
    """The listener that the client connected to."""
    principal: Principal = ANONYMOUS
    """Who the client is, as far as it has authenticated; its `client.id` proves nothing."""
    sasl_session: "SaslSession | None" = None
    """The state of SASL authentication; None if the listener does not require it."""
    software_name: str = ""
    """The client's implementation, as it named it in ApiVersions; empty if it did not."""
    software_version: str = ""
    is_closing: bool = False
    """True if the connection is to be closed after the responses in flight."""
    throttled_ms: int = 0
    """For how long to mute the connection, because its client exceeds a quota."""
    hold: "asyncio.Future[Any] | None" = None
    """Set by a handler that does work in the background which later requests must not overtake:
    none is dispatched until it is done."""
    is_reading_segments: bool = False
    """True while a fetch reads from segments; until it is answered, nothing else is dispatched."""

    refused_batches: RefusedBatches | None = None
    """The batches of idempotent producers that were refused; None before the first."""

    def __str__(self) -> str:
        return str(Address(self.host, self.port))


class ShutdownSignal:
    """Set once, when the broker shuts down; wakes the requests that only wait.

    A handler that waits (a fetch for records) adds a callback, and responds with what it has.
    """

    __slots__ = ("_callbacks", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._callbacks: set[Callable[[], object]] = set()

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the signal is set; immediately, if it is set already."""
        if self.is_set:
            callback()
        else:
            self._callbacks.add(callback)

    def remove_callback(self, callback: Callable[[], object]) -> None:
        self._callbacks.discard(callback)

    def set(self) -> None:
        self.is_set = True
        callbacks, self._callbacks = self._callbacks, set()
        for callback in callbacks:
            callback()


class RequestContext(msgspec.Struct, gc=False):
    """The context of one request. Created for every request, so it only holds references."""

    client: ClientInfo
    client_id: str | None
    """The `client.id` in the request header."""
    api: Api[Any, Any]
    version: int
    correlation_id: int
    received_ms: int
    """When the request was received, in ms since 1970."""
    started: float
    """The same moment in seconds, by the clock that measures durations."""
    broker: "Services"
    shutdown: ShutdownSignal
    request_bytes: int = 0
    """The size of the request, header included."""
    busy_seconds: float = 0.0
    """How long the event loop worked on the request before it had to wait, if it had to."""

    def is_authorized(
        self,
        operation: Operation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        quiet: bool = False,
    ) -> bool:
        """Whether the client may perform an operation on a resource, by the ACLs.

        `quiet` keeps a denial out of the audit log, where being denied is normal. To be called once
        for each resource that a request names, by the table in `permissions`.
        """
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_authorized(
            self, operation, resource_type, name, quiet=quiet
        )

    def can_describe(self, resource_type: ResourceType, name: str) -> bool:
        """Whether a resource is listed for the client if the request does not name it."""
        return self.is_authorized(Operation.DESCRIBE, resource_type, name, quiet=True)

    def is_authorized_for_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client may perform an operation on at least one resource of a type."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_authorized_for_any(
            self, operation, resource_type
        )

    def require(
        self, operation: Operation, resource_type: ResourceType, name: str = CLUSTER_NAME
    ) -> None:
        """Raise the authorization error of the resource type unless the client is authorized."""
        if not self.is_authorized(operation, resource_type, name):
            raise authorization_error(resource_type, name)
