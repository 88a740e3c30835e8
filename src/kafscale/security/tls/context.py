"""TLS contexts of listeners and of Kafscale's own clients.

    tls = ListenerTls(config.tls, "EXTERNAL")
    tls.context                  # For new connections.
    tls.refresh()                # Call regularly: reloads changed files.
    tls.principal(ssl_object)    # The principal of a client certificate.

Event loops drop the alert that OpenSSL creates for a failed handshake, and close the connection.
Clients then see a lost connection and retry forever, where an alert (`certificate_required`,
`unknown_ca`) makes them stop and report it. The acceptor provides a function that sends, best
effort:

    with alerts_to(connection.send):
        await loop.connect_accepted_socket(..., ssl=tls.context)

TLS 1.2 is the minimum, with forward-secret ciphers only. Unusable files prevent the start, with an
error that names the setting. While running, they are logged and the previous files stay in use;
open connections keep their context.
"""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Final

from kafscale.config.sections.security import ClientTls, Tls, for_listener
from kafscale.config.watched_files import WatchedFiles
from kafscale.errors import ConfigError
from kafscale.net import tls_files
from kafscale.observability.logging import get_logger
from kafscale.security.principal import ANONYMOUS, USER_PREFIX, Principal
from kafscale.security.tls import distinguished_name
from kafscale.security.tls.principal_mapping import PrincipalMapper

logger = get_logger(__name__)

CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_OPTIONS: Final = ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE

Send = Callable[[bytes], object]

_SEND: ContextVar[Send | None] = ContextVar("alerts", default=None)


class ListenerTls:
    """The TLS configuration of a listener."""

    def __init__(self, settings: Tls, listener: str) -> None:
        """Raises `ConfigError` for unusable files."""
        self._settings = settings
        self._listener = listener
        self._certificate = for_listener(settings.cert_file, listener)
        self._key = for_listener(settings.key_file, listener) or self._certificate
        self._authorities = for_listener(settings.ca_file, listener)
        self._revoked = for_listener(settings.crl_file, listener)
        self._verification = _CLIENT_AUTH[for_listener(settings.client_auth, listener, "none")]
        if not self._certificate:
            raise ConfigError(
                f"tls.certFile has no certificate for listener {listener}, which uses TLS; set it, "
                f"for example to {listener}=server.crt"
            )
        if self._verification is not ssl.CERT_NONE and not self._authorities:
            raise ConfigError(
                f"tls.clientAuth requests client certificates for listener {listener}, but "
                "tls.caFile has no CA certificate for it; set it, or set tls.clientAuth to none"
            )
        if self._verification is ssl.CERT_NONE and self._revoked:
            raise ConfigError(
                f"tls.crlFile is set for listener {listener}, but tls.clientAuth requests no client"
                " certificates there; set it to required, or remove the file"
            )
        self._principal_mapper = PrincipalMapper(settings.principal_mapping_rules)
        files = (self._certificate, self._key, self._authorities, self._revoked)
        self._files = WatchedFiles(path for path in files if path)
        self.context = self._build()
        """The context for new connections; replaced when files change."""

    def refresh(self) -> bool:
        """Reload changed files; return whether a new context is in use."""
        if not self._files.changed():
            return False
        try:
            self.context = self._build()
        except ConfigError as error:
            reason = str(error)
            logger.error("certificate not reloaded", listener=self._listener, reason=reason)
            return False
        logger.info("certificate reloaded", listener=self._listener, file=self._certificate)
        return True

    def principal(self, connection: ssl.SSLObject | ssl.SSLSocket) -> Principal:
        """The principal of the client certificate, or `ANONYMOUS` without one.

        Raises `AuthenticationError` if no mapping rule matches.
        """
        certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        name = distinguished_name.subject(certificate)
        return Principal(USER_PREFIX + self._principal_mapper.principal(name))

    def _build(self) -> ssl.SSLContext:
        context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[self._settings.min_version]
        context.options |= _OPTIONS
        try:
            context.set_ciphers(self._settings.ciphers or CIPHERS)
        except ssl.SSLError:
            raise ConfigError(
                f"tls.ciphers: OpenSSL supports no cipher of {self._settings.ciphers!r}; see"
                " `openssl ciphers`, or leave it empty"
            ) from None
        tls_files.load_certificate(
            context, "tls", self._certificate, self._key, self._settings.key_password
        )
        if self._verification is not ssl.CERT_NONE:
            tls_files.load_authorities(context, "tls", self._authorities)
        if self._revoked:
            tls_files.load_revocation_lists(context, "tls", self._revoked)
        context.verify_mode = self._verification
        return context


def client_context(settings: ClientTls) -> ssl.SSLContext:
    """The context for connections to brokers; raises `ConfigError` for unusable files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= _OPTIONS
    context.set_ciphers(CIPHERS)
    context.check_hostname = settings.verify_hostname
    key = settings.key_file or settings.cert_file
    tls_files.load_client_files(context, "client.tls", settings.ca_file, settings.cert_file, key)
    return context


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
