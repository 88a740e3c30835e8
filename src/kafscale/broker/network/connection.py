"""One client: requests are begun as they come, answers go out in the order of the requests.

The laws:

* Answers keep the order of their requests, whatever order they are finished in.
* Everything is bounded. No request is begun, and nothing is read, while `in_flight_requests_max`
  requests are unanswered, while the client does not take its answers, or while producers are held
  back. So a slow client makes us hold the transport's high water and one answer per request in
  flight, never more.
* A client that leaves takes along its requests that only wait; an append goes on without it.
* An idle connection holds no buffer: all connections of a loop receive into the same one, which
  `FrameReader` leaves empty between two calls.
* Strangers get little: until a client has logged in, where it has to, its frames are small, and it
  has to be done within the time for a first request. Nobody may take for ever to send a frame.
* No clock is read and no timer is kept here: `sweep` is told the time, now and then.

What a request means is left to `dispatch`; who may connect to `server`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, cast

from kafscale.broker.network.listener_config import Listener
from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.requests.dispatcher import Dispatcher, Pending
from kafscale.broker.requests.versioned_api import Parts
from kafscale.broker.security.audit import Audit
from kafscale.broker.security.sasl_login import Logins
from kafscale.errors import AuthenticationError, FrameError
from kafscale.observability.logging import get_logger
from kafscale.protocol.frame import FrameReader
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.protocol.receive_buffer import FrameBufferPool
from kafscale.security.principal import ANONYMOUS
from kafscale.security.tls.context import ListenerTls

log = get_logger(__name__)

Congestion = Callable[[], Awaitable[object] | None]
"""Whether producers have to be held back, and what to await until they need not be any more."""

_PRODUCE_KEY: Final = PRODUCE.key.to_bytes(2, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one connection may take."""

    request_bytes_max: int
    in_flight_requests_max: int
    first_request_seconds: float
    """How long a new connection may take until its first whole request, and to log in."""
    frame_seconds: float
    """How long a frame may take to come in, once it has begun."""
    idle_seconds: float
    """How long a connection may be silent, if it awaits nothing."""
    linger_seconds: float
    """How long a closed connection may take to read what it is still owed."""


class Lobby:
    """What the connections at one listener share, and where they come and go."""

    __slots__ = (
        "audit",
        "closed",
        "congestion",
        "dispatcher",
        "limits",
        "listener",
        "logins",
        "memory",
        "opened",
        "tls",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        limits: Limits,
        *,
        opened: "Callable[[Connection], bool]",
        closed: "Callable[[Connection], None]",
        congestion: Congestion | None = None,
        listener: Listener | None = None,
        tls: ListenerTls | None = None,
        logins: Logins | None = None,
        audit: Audit | None = None,
        memory: FrameBufferPool | None = None,
    ) -> None:
        """`tls` and `logins` are there if the listener asks for them; `memory` may be shared."""
        self.dispatcher = dispatcher
        self.limits = limits
        self.listener = listener or Listener()
        self.tls = tls
        self.logins = logins
        self.audit = audit
        self.opened = opened
        """Told of every connection; whether it may stay."""
        self.closed = closed
        """told of every connection when it is gone."""
        self.congestion = congestion
        self.memory = memory or FrameBufferPool()


class Connection(asyncio.BufferedProtocol):
    """One client's connection, from `connection_made` to `connection_lost`."""

    __slots__ = (
        "_answers",
        "_frame_count",
        "_frame_swept",
        "_frames",
        "_gone",
        "_lobby",
        "_moved",
        "_muted",
        "_quiet_since",
        "_reader",
        "_reading",
        "_relief",
        "_sending",
        "_spoke",
        "_stopping",
        "_transport",
        "_writable",
        "client",
        "is_made",
    )

    def __init__(self, lobby: Lobby, now: float, gone: Callable[[], None] = lambda: None) -> None:
        """`gone` is called when the connection is no more, if there ever was one."""
        self._lobby = lobby
        self._gone = gone
        self.is_made = False
        self._reader = FrameReader(lobby.limits.request_bytes_max, lobby.memory)
        self._frames: list[memoryview] = []  # Read, but not begun: at most one receive buffer.
        self._answers: list[Parts | Pending] = []  # Of requests begun, in their order.
        self._reading = True
        self._writable = True
        self._relief: asyncio.Future[object] | None = None  # Awaited while producers are held back.
        self._muted: asyncio.TimerHandle | None = None  # Until a quota is kept again.
        self._sending: asyncio.Handle | None = None  # About to send what is answered.
        self._stopping = False
        self._spoke = False  # Whether a whole request has come, of somebody who is in.
        self._frame_count = 0
        self._frame_swept = (0, now)  # Which frame was awaited at a sweep, and since when.
        self._moved = False  # Whether bytes have come since the last sweep.
        self._quiet_since = now

    # --- what the transport tells -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_made = True
        self._transport = cast("asyncio.Transport", transport)
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        broker_host, broker_port = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.client = ClientInfo(
            host, port, broker_host, broker_port, listener=self._lobby.listener
        )
        if self._stopping or not (self._lobby.opened(self) and self._identify()):
            self.refuse()

    def get_buffer(self, _size_hint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, count: int) -> None:
        self._moved = True
        try:
            frames = self._reader.received(count)
        except FrameError as error:
            self._lobby.dispatcher.strangers.warn(
                log, "unreadable frame", client=str(self.client), reason=str(error)
            )
            self.close()
            return
        if frames:
            self._frame_count += len(frames)
            self._frames += frames
            self._advance()
            if not self._spoke and (self.client.login is None or self.client.login.identity):
                self._spoke = True
                self._reader.frame_bytes_max = self._lobby.limits.request_bytes_max

    def pause_writing(self) -> None:
        self._writable = False
        self._advance()

    def resume_writing(self) -> None:
        self._writable = True
        self._advance()

    def connection_lost(self, _error: Exception | None) -> None:
        self._leave()
        self._lobby.closed(self)
        self._gone()

    # --- what the server tells --------------------------------------------------------------------

    @property
    def has_spoken(self) -> bool:
        """Whether somebody who is in has asked for something."""
        return self._spoke

    def stop(self) -> None:
        """Begin no more requests, answer those in flight, then close."""
        self._stopping = True
        self._frames.clear()
        if self._answers:
            self._advance()
        else:
            self._transport.close()

    def close(self) -> None:
        """Close now; answers that are with the transport are still sent."""
        self._leave()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def refuse(self) -> None:
        """Let nobody in here, or nobody any more."""
        self._stopping = True
        if self.is_made:
            self._transport.abort()

    def sweep(self, now: float) -> None:
        """Close the connection if it has been silent for too long."""
        limits = self._lobby.limits
        if self._is_dragging(now) and not self._transport.is_closing():
            log.debug("connection closed in the middle of a frame", client=str(self.client))
            self.close()
            return
        if self._spoke and (self._moved or self._answers):
            self._moved = False
            self._quiet_since = now
            return
        quiet_seconds = now - self._quiet_since
        if self._transport.is_closing():
            if quiet_seconds > limits.linger_seconds:
                self._transport.abort()
        elif quiet_seconds > (limits.idle_seconds if self._spoke else limits.first_request_seconds):
            log.debug("silent connection closed", client=str(self.client))
            self.close()

    def _is_dragging(self, now: float) -> bool:
        """Whether one frame has been coming in for too long, though we were ready to take it."""
        number, since = self._frame_swept
        if number != self._frame_count or not self._reader.pending or not self._reading:
            self._frame_swept = (self._frame_count, now)
            return False
        return now - since > self._lobby.limits.frame_seconds

    def _identify(self) -> bool:
        """Find out who it is, as far as that is known by now; whether it may stay."""
        lobby = self._lobby
        if lobby.logins is not None:
            login = self.client.login = lobby.logins.open(lobby.listener.name)
            self._reader.frame_bytes_max = login.receive_bytes_max
        elif lobby.tls is not None:
            return self._recognize(lobby.tls)
        return True

    def _recognize(self, tls: ListenerTls) -> bool:
        """Take the client for whom its certificate names; whether it may stay."""
        audit = self._lobby.audit
        try:
            self.client.identity = tls.principal(self._transport.get_extra_info("ssl_object"))
        except AuthenticationError as error:
            if audit is not None:
                audit.login_failed(self.client, "SSL", "", str(error))
            return False
        if audit is not None and self.client.identity is not ANONYMOUS:
            audit.logged_in(self.client, "SSL")
        return True

    # --- requests in, answers out -----------------------------------------------------------------

    @property
    def _may_begin(self) -> bool:
        return (
            self._writable
            and not self._stopping
            and not self.client.is_leaving
            and self._relief is None
            and self._muted is None
            and len(self._answers) < self._lobby.limits.in_flight_requests_max
        )

    def _advance(self) -> None:
        """Begin what may be begun, and read on only if nothing is left that may not."""
        while self._frames and self._may_begin:
            self._begin(self._frames.pop(0))
        wanted = self._may_begin
        if wanted != self._reading and not self._transport.is_closing():
            self._reading = wanted
            if wanted:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _begin(self, frame: memoryview) -> None:
        answer = self._lobby.dispatcher.dispatch(self.client, frame)
        if answer is None:
            self.close()
            return
        if isinstance(answer, Pending):
            answer.notify = self._finish
            self._answers.append(answer)
        elif self._answers:
            self._answers.append(answer)
        elif answer:
            self._transport.writelines(answer)
        if self.client.throttled_ms:
            self._mute()
        if self._lobby.congestion is not None and frame[:2] == _PRODUCE_KEY:
            self._hold_back(self._lobby.congestion())

    def _finish(self) -> None:
        """Send the answers whose turn it is; those that are made in one turn of the loop, at once.

        What made one request durable has often done so for those behind it.
        """
        if len(self._answers) == 1:
            self._send()
        elif self._sending is None:
            self._sending = asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._sending = None
        parts: Parts = []
        count = 0
        for answer in self._answers:
            if isinstance(answer, Pending):
                if not answer.done:
                    break
                if answer.parts is None:
                    self._transport.writelines(parts)
                    self.close()
                    return
                parts += answer.parts
            else:
                parts += answer
            count += 1
        if count:
            del self._answers[:count]
            self._transport.writelines(parts)
            if (self._stopping or self.client.is_leaving) and not self._answers:
                self._transport.close()
                return
            if self.client.throttled_ms:
                self._mute()
            self._advance()

    def _mute(self) -> None:
        """Read nothing from the client for as long as its quotas say (KIP-219)."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.client.throttled_ms / 1000
        self.client.throttled_ms = 0
        if self._muted is not None:
            until = max(until, self._muted.when())
            self._muted.cancel()
        self._muted = loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._advance()

    def _hold_back(self, relief: Awaitable[object] | None) -> None:
        if relief is not None:
            self._relief = asyncio.ensure_future(relief)
            self._relief.add_done_callback(self._relieved)

    def _relieved(self, relief: "asyncio.Future[object]") -> None:
        if not relief.cancelled():
            relief.exception()  # Whoever failed tells it himself; the client has no part in it.
        self._relief = None
        self._advance()

    def _leave(self) -> None:
        self._stopping = True
        if self._muted is not None:
            self._muted.cancel()
        if self._sending is not None:
            self._sending.cancel()
        self._frames.clear()
        for answer in self._answers:
            if isinstance(answer, Pending):
                answer.client_left()
        self._answers.clear()
