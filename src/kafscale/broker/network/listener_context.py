"""`ListenerContext`: what all connections of one listener share, and the limits of each."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafscale.broker.network.listener_config import Listener
from kafscale.broker.requests.dispatcher import Dispatcher
from kafscale.broker.requests.response_budget import ResponseBudget
from kafscale.broker.security.audit import AuditLog
from kafscale.broker.security.sasl_login import SaslSessions
from kafscale.protocol.frame import FrameBufferPool
from kafscale.security.tls.context import ListenerTls

if TYPE_CHECKING:
    from kafscale.broker.network.connection import Connection

UNLIMITED_BYTES: Final = 2**63

Backpressure = Callable[[], Awaitable[object] | None]
"""Returns what producers have to wait for, or None if they may continue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one connection."""

    request_bytes_max: int
    in_flight_requests_max: int
    queued_bytes_max: int = 1024 * 1024
    """No request is dispatched while more than this waits to be sent in its turn."""
    first_request_seconds: float
    """Time limit for the first complete request, and for authentication."""
    frame_seconds: float
    """Time limit for receiving one frame, from its first byte."""
    idle_seconds: float
    """How long a connection without requests in flight may be idle."""
    linger_seconds: float
    """How long a closed connection may take to read its remaining responses."""


class ListenerContext:
    """What all connections of one listener share."""

    __slots__ = (
        "audit",
        "backpressure",
        "dispatcher",
        "limits",
        "listener",
        "memory",
        "on_closed",
        "on_opened",
        "responses",
        "sasl_sessions",
        "tls",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        limits: Limits,
        *,
        on_opened: "Callable[[Connection], bool]",
        on_closed: "Callable[[Connection], None]",
        backpressure: Backpressure | None = None,
        listener: Listener | None = None,
        tls: ListenerTls | None = None,
        sasl_sessions: SaslSessions | None = None,
        audit: AuditLog | None = None,
        memory: FrameBufferPool | None = None,
        responses: ResponseBudget | None = None,
    ) -> None:
        """`tls` and `sasl_sessions` are set if the listener's protocol requires them."""
        self.dispatcher = dispatcher
        self.limits = limits
        self.listener = listener or Listener()
        self.tls = tls
        self.sasl_sessions = sasl_sessions
        self.audit = audit
        self.on_opened = on_opened
        """Called for every new connection; returns False to refuse it."""
        self.on_closed = on_closed
        """Called for every connection when it is lost."""
        self.backpressure = backpressure
        self.memory = memory or FrameBufferPool()
        self.responses = responses or ResponseBudget(UNLIMITED_BYTES)
