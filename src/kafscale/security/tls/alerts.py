"""TLS contexts that send an alert when a handshake fails.

Event loops drop the alert that OpenSSL creates for a failed handshake, and close the connection.
Clients then see a lost connection and retry forever, where an alert (`certificate_required`,
`unknown_ca`) makes them stop and report it. The acceptor provides a function that sends:

    with alerts_to(connection.send):
        await loop.connect_accepted_socket(..., ssl=context)

Sending is best effort.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

Send = Callable[[bytes], object]

_SEND: ContextVar[Send | None] = ContextVar("alerts", default=None)


@contextmanager
def alerts_to(send: Send) -> Iterator[None]:
    """Send alerts of handshakes that start inside the block with `send`."""
    token = _SEND.set(send)
    try:
        yield
    finally:
        _SEND.reset(token)


class AlertingObject(ssl.SSLObject):
    """One end of a connection."""

    outgoing: ssl.MemoryBIO
    send: Send | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError:
            if self.send is not None:
                with suppress(OSError):  # The peer is gone or does not read.
                    self.send(self.outgoing.read())
            raise
        self.send = None


class AlertingContext(ssl.SSLContext):
    """A context whose connections send alerts."""

    sslobject_class = AlertingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        ssl_object = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(ssl_object, AlertingObject)
        ssl_object.outgoing = outgoing
        ssl_object.send = _SEND.get()
        return ssl_object
