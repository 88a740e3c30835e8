"""One client connection: serves requests in the order in which they came, as far as they notice.

Invariants:

* Responses are sent in the order of their requests, whatever order they complete in.
* A request sees the effects of all earlier ones. It waits for their responses, except for those
  that are pipelined (`Route.is_pipelined`): a fetch that waits, or a produce whose batches have
  their place in the log already. What depends on the end of a log waits for earlier produces.
* Everything is bounded. No request is dispatched, and nothing is read, while
  `in_flight_requests_max` requests are in flight, while `queued_bytes_max` of responses wait for an
  earlier one, while the client does not read its responses, while a fetch reads from segments,
  while a handler holds later requests back, or while producers are under backpressure. What a
  client has not received is counted in the budget of all connections, which limits fetches
  (`ResponseBudget`); only what is below the transport's high water mark is not.
* A disconnect cancels the client's requests that only wait; an append continues without it.
* An idle connection holds no buffer: all connections of a loop receive into the same one, which
  `FrameReader` leaves empty between two calls.
* Unauthenticated clients get little: until a client has authenticated, where the listener requires
  it, its frames are small, and it must authenticate within the time limit for a first request. No
  client may take longer than `frame_seconds` to send a frame.
* This module reads no clock and keeps no timer for timeouts: the server passes the time to `sweep`.

`dispatcher` serves the requests; `server` decides who may connect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, cast

from kafscale.broker.network.listener_context import ListenerContext
from kafscale.broker.requests.context import ClientInfo
from kafscale.broker.requests.pending_response import PendingResponse, must_wait
from kafscale.broker.requests.route import Parts
from kafscale.errors import AuthenticationError, FrameError
from kafscale.observability.logging import get_logger
from kafscale.protocol.frame import FrameReader
from kafscale.protocol.messages.produce import PRODUCE
from kafscale.security.principal import ANONYMOUS
from kafscale.security.tls.context import ListenerTls

logger = get_logger(__name__)

_PRODUCE_KEY: Final = PRODUCE.key.to_bytes(2, "big")


class Connection(asyncio.BufferedProtocol):
    """One client's connection, from `connection_made` to `connection_lost`."""

    __slots__ = (
        "_backpressure",
        "_context",
        "_exclusive",
        "_frame_count",
        "_frame_swept",
        "_frames",
        "_has_received",
        "_hold",
        "_idle_since",
        "_muted",
        "_on_lost",
        "_queued_bytes",
        "_reader",
        "_reading",
        "_responses",
        "_sending",
        "_stopping",
        "_transport",
        "_unsent_bytes",
        "_writable",
        "client",
        "has_sent_request",
        "is_established",
    )

    def __init__(
        self, context: ListenerContext, now: float, on_lost: Callable[[], None] = lambda: None
    ) -> None:
        """`on_lost` is called when the connection is lost, if it was ever made."""
        self._context = context
        self._on_lost = on_lost
        self.is_established = False
        self._reader = FrameReader(context.limits.request_bytes_max, context.memory)
        self._frames: list[memoryview] = []  # Not dispatched yet: at most one receive buffer.
        self._responses: list[Parts | PendingResponse] = []  # In the order of the requests.
        self._queued_bytes = 0  # Of responses that are complete, but wait for an earlier one.
        self._unsent_bytes = 0  # What is counted in the budget.
        self._reading = True
        self._writable = True
        self._backpressure: asyncio.Future[object] | None = None  # Set while producers must wait.
        self._hold: asyncio.Future[object] | None = None  # Set by a handler: `ClientInfo.hold`.
        self._exclusive: PendingResponse | None = None  # The last one that later ones wait for.
        self._muted: asyncio.TimerHandle | None = None  # Set while a quota is exceeded.
        self._sending: asyncio.Handle | None = None  # The scheduled `_send`.
        self._stopping = False
        self.has_sent_request = False
        """True once an authenticated client has sent a complete request."""
        self._frame_count = 0
        self._frame_swept = (0, now)  # The frame awaited at the last sweep, and since when.
        self._has_received = False  # Whether bytes have arrived since the last sweep.
        self._idle_since = now

    # --- called by the transport ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_established = True
        self._transport = cast("asyncio.Transport", transport)
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]
        local_host, local_port = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.client = ClientInfo(host, port, local_host, local_port, self._context.listener)
        if self._stopping or not (self._context.on_opened(self) and self._begin_authentication()):
            self.reject()

    def get_buffer(self, _size_hint: int) -> memoryview:
        return self._reader.buffer()

    def buffer_updated(self, count: int) -> None:
        self._has_received = True
        try:
            frames = self._reader.received(count)
        except FrameError as error:
            self._context.dispatcher.unauthenticated_log.warn(
                logger, "unreadable frame", client=str(self.client), reason=str(error)
            )
            self.close()
            return
        if frames:
            self._frame_count += len(frames)
            self._frames += frames
            self._dispatch_ready()
            session = self.client.sasl_session
            if not self.has_sent_request and (session is None or session.principal):
                self.has_sent_request = True
                self._reader.frame_bytes_max = self._context.limits.request_bytes_max

    def pause_writing(self) -> None:
        self._writable = False
        self._count_unsent()
        self._dispatch_ready()

    def resume_writing(self) -> None:
        self._writable = True
        self._count_unsent()
        self._dispatch_ready()

    def connection_lost(self, _error: Exception | None) -> None:
        self._discard_requests()
        self._writable = True
        self._count_unsent()
        self._context.on_closed(self)
        self._on_lost()

    # --- called by the server ---------------------------------------------------------------------

    def stop(self) -> None:
        """Dispatch no further requests, answer those in flight, then close."""
        self._stopping = True
        self._frames.clear()
        if self._responses:
            self._dispatch_ready()
        else:
            self._transport.close()

    def close(self) -> None:
        """Close now; the transport still sends the responses that it holds."""
        self._discard_requests()
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def reject(self) -> None:
        """Refuse the connection; abort it if it is open."""
        self._stopping = True
        if self.is_established:
            self._transport.abort()

    def sweep(self, now: float) -> None:
        """Close the connection if it has been idle for too long."""
        limits = self._context.limits
        if self._unsent_bytes:
            self._count_unsent()
        if self._frame_timed_out(now) and not self._transport.is_closing():
            logger.debug("connection closed: frame timed out", client=str(self.client))
            self.close()
            return
        if self.has_sent_request and (self._has_received or self._responses):
            self._has_received = False
            self._idle_since = now
            return
        idle_seconds = now - self._idle_since
        if self._transport.is_closing():
            if idle_seconds > limits.linger_seconds:
                self._transport.abort()
            return
        is_established = self.has_sent_request
        if idle_seconds > (limits.idle_seconds if is_established else limits.first_request_seconds):
            logger.debug("idle connection closed", client=str(self.client))
            self.close()

    def _frame_timed_out(self, now: float) -> bool:
        """True if one frame has been incomplete for too long although we were reading."""
        number, since = self._frame_swept
        if number != self._frame_count or not self._reader.pending or not self._reading:
            self._frame_swept = (self._frame_count, now)
            return False
        return now - since > self._context.limits.frame_seconds

    def _begin_authentication(self) -> bool:
        """Open a SASL session or read the client's certificate; False refuses the connection."""
        context = self._context
        if context.sasl_sessions is not None:
            session = context.sasl_sessions.open(context.listener.name)
            self.client.sasl_session = session
            self._reader.frame_bytes_max = session.receive_bytes_max
        elif context.tls is not None:
            return self._authenticate_certificate(context.tls)
        return True

    def _authenticate_certificate(self, tls: ListenerTls) -> bool:
        """Set the client's principal by its certificate; False refuses the connection."""
        audit = self._context.audit
        try:
            self.client.principal = tls.principal(self._transport.get_extra_info("ssl_object"))
        except AuthenticationError as error:
            if audit is not None:
                audit.login_failed(self.client, "SSL", "", str(error))
            return False
        if audit is not None and self.client.principal is not ANONYMOUS:
            audit.logged_in(self.client, "SSL")
        return True

    # --- requests and responses -------------------------------------------------------------------

    @property
    def _can_dispatch(self) -> bool:
        return self._exclusive is None and self._can_read

    @property
    def _can_read(self) -> bool:
        """Whether to read on while no request waits: otherwise a disconnect is not noticed."""
        return (
            self._writable
            and not self._stopping
            and not self.client.is_closing
            and self._backpressure is None
            and self._hold is None
            and self._muted is None
            and self._queued_bytes <= self._context.limits.queued_bytes_max
            and not self.client.is_reading_segments
            and len(self._responses) < self._context.limits.in_flight_requests_max
        )

    def _dispatch_ready(self) -> None:
        """Dispatch the received requests as far as allowed; read on only if all could be."""
        while (
            self._frames and self._can_dispatch and not must_wait(self._frames[0], self._responses)
        ):
            self._dispatch(self._frames.pop(0))
        should_read = not self._frames and self._can_read
        if should_read != self._reading and not self._transport.is_closing():
            self._reading = should_read
            if should_read:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def _dispatch(self, frame: memoryview) -> None:
        response = self._context.dispatcher.dispatch(self.client, frame)
        if response is None:
            self.close()
            return
        if isinstance(response, PendingResponse):
            response.notify = self._on_response
            self._responses.append(response)
            if response.is_exclusive:
                self._exclusive = response
        elif self._responses:
            self._responses.append(response)
            self._queued_bytes += sum(map(len, response))
            self._count_unsent()
        elif response:
            self._transport.writelines(response)
        if self.client.throttled_ms:
            self._mute()
        if self.client.hold is not None:
            self._hold, self.client.hold = self.client.hold, None
            self._hold.add_done_callback(self._release_hold)
        if self._context.backpressure is not None and frame[:2] == _PRODUCE_KEY:
            self._apply_backpressure(self._context.backpressure())

    def _on_response(self) -> None:
        """Send the responses whose turn it is.

        Responses that complete in one iteration of the event loop are sent together: the upload
        that made one request durable often did so for those behind it.
        """
        if len(self._responses) == 1:
            self._send()
        elif self._sending is None:
            self._sending = asyncio.get_running_loop().call_soon(self._send)

    def _send(self) -> None:
        self._sending = None
        if self._exclusive is not None and self._exclusive.done:
            self._exclusive = None
        count, closes = self._write_complete()
        if closes:
            self.close()
            return
        if self._unsent_bytes or len(self._responses) > 1:
            self._queued_bytes = sum(map(_complete_bytes, self._responses))
            self._count_unsent()
        if count:
            if (self._stopping or self.client.is_closing) and not self._responses:
                self._transport.close()
                return
            if self.client.throttled_ms:
                self._mute()
        if count or not self._reading:
            self._dispatch_ready()

    def _write_complete(self) -> tuple[int, bool]:
        """Write the responses whose turn it is; returns how many, and whether the next closes."""
        parts: Parts = []
        count, closes = 0, False
        for response in self._responses:
            if not isinstance(response, PendingResponse):
                parts += response
            elif not response.done:
                break
            elif response.parts is None:
                closes = True
                break
            else:
                parts += response.parts
            count += 1
        del self._responses[:count]
        if count:
            self._transport.writelines(parts)
        return count, closes

    def _count_unsent(self) -> None:
        """Count in the budget what the client has not received."""
        buffered_bytes = 0 if self._writable else self._transport.get_write_buffer_size()
        unsent_bytes = self._queued_bytes + buffered_bytes
        self._context.responses.used_bytes += unsent_bytes - self._unsent_bytes
        self._unsent_bytes = unsent_bytes

    def _mute(self) -> None:
        """Read nothing from the client for the throttle time of its quotas (KIP-219)."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.client.throttled_ms / 1000
        self.client.throttled_ms = 0
        if self._muted is not None:
            until = max(until, self._muted.when())
            self._muted.cancel()
        self._muted = loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._muted = None
        self._dispatch_ready()

    def _apply_backpressure(self, backpressure: Awaitable[object] | None) -> None:
        if backpressure is not None:
            self._backpressure = asyncio.ensure_future(backpressure)
            self._backpressure.add_done_callback(self._release_backpressure)

    def _release_backpressure(self, backpressure: "asyncio.Future[object]") -> None:
        if not backpressure.cancelled():
            backpressure.exception()  # Retrieved, so that asyncio does not log it; its owner does.
        self._backpressure = None
        self._dispatch_ready()

    def _release_hold(self, hold: "asyncio.Future[object]") -> None:
        if not hold.cancelled():
            hold.exception()  # Retrieved, as for backpressure.
        self._hold = None
        self._dispatch_ready()

    def _discard_requests(self) -> None:
        self._stopping = True
        if self._muted is not None:
            self._muted.cancel()
        if self._sending is not None:
            self._sending.cancel()
        self._frames.clear()
        for response in self._responses:
            if isinstance(response, PendingResponse):
                response.client_disconnected()
        self._responses.clear()
        self._exclusive = None
        self._queued_bytes = 0
        self._count_unsent()


def _complete_bytes(response: Parts | PendingResponse) -> int:
    """The size of a response that is complete; 0 if it is not."""
    parts = response.parts if isinstance(response, PendingResponse) else response
    return sum(map(len, parts or ()))
