"""TLS that says why: a client whose handshake fails is sent the alert that OpenSSL has for it.

Why: event loops drop what OpenSSL wants to say when a handshake fails, and close. Clients then
see a connection that was lost, and try again for ever, where an alert (`certificate_required`,
`unknown_ca`) has them stop and tell their users. Whoever accepts a connection says how to reach it:

    with alerts_to(connection.send):
        await loop.connect_accepted_socket(..., ssl=context)

Sending is a best effort, of a few bytes; what to do with the connection is left to others.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

Send = Callable[[bytes], object]

_SEND: ContextVar[Send | None] = ContextVar("alerts", default=None)


@contextmanager
def alerts_to(send: Send) -> Iterator[None]:
    """Have the alerts of a handshake that begins inside the block sent by `send`."""
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
                with suppress(OSError):  # It is gone, or does not listen: then nobody is told.
                    self.send(self.outgoing.read())
            raise
        self.send = None


class AlertingContext(ssl.SSLContext):
    """A context whose connections say why they fail."""

    sslobject_class = AlertingObject

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(made, AlertingObject)
        made.outgoing = outgoing
        made.send = _SEND.get()
        return made
