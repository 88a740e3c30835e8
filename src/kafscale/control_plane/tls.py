"""TLS of the control plane: both sides authenticate with certificates.

    ServerTls(settings).credentials                   # Of a server.
    await open_channel(address, tls, options)         # Of a client.

Invariants: a client without a certificate of the right CA is rejected, and so is one whose names
`AllowedSubjects` does not list. A server checks its files for every new connection; invalid new
files are logged once, and the former ones stay in use. Existing connections keep their
certificates.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final

import grpc

from kafscale.config.sections.security import ClientTls, PeerTls
from kafscale.config.watched_files import WatchedFiles
from kafscale.control_plane.errors import UnreachableError
from kafscale.errors import ClusterAuthorizationError, ConfigError
from kafscale.net import tls_files
from kafscale.observability.logging import get_logger

logger = get_logger(__name__)
audit = get_logger("kafscale.audit")

HANDSHAKE_SECONDS_MAX: Final = 10.0
"""How long the TLS handshake may take."""
ANONYMOUS: Final = "ANONYMOUS"
"""The principal of clients without a certificate, as in Kafka."""
peer_names: Final[ContextVar[frozenset[str]]] = ContextVar("peer_names", default=frozenset())
"""The names in the certificate of the client whose request is being handled."""
READ_ONLY_METHODS: Final = frozenset({"GetStatus", "StreamMetrics", "WatchAssignments"})
"""Methods that change nothing."""
TRANSACTION_METHODS: Final = frozenset({"WriteTransactionMarkers", "AddPartitionsToTransaction"})
"""What brokers do on behalf of clients, in every transaction; their requests are authorized."""
_UNAUDITED: Final = READ_ONLY_METHODS | TRANSACTION_METHODS


class ServerTls:
    """The certificate of a server, and the CAs it trusts."""

    def __init__(self, settings: PeerTls) -> None:
        """Raises `ConfigError` if the files are invalid."""
        self._settings = settings
        self._files = WatchedFiles([settings.cert_file, settings.key_file, settings.ca_file])
        self.credentials = grpc.dynamic_ssl_server_credentials(
            self._load(),
            self._fetch,  # type: ignore[arg-type] # The stubs do not allow None.
            require_client_authentication=True,
        )

    def _load(self) -> grpc.ServerCertificateConfiguration:
        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls_files.load_certificate(context, "control.tls", settings.cert_file, settings.key_file)
        tls_files.load_authorities(context, "control.tls", settings.ca_file)
        key_and_certificate = (
            Path(settings.key_file).read_bytes(),
            Path(settings.cert_file).read_bytes(),
        )
        return grpc.ssl_server_certificate_configuration(
            [key_and_certificate], Path(settings.ca_file).read_bytes()
        )

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """The new configuration, or None to keep the current one. Called by gRPC's threads."""
        if not self._files.changed():
            return None
        try:
            loaded = self._load()
        except (ConfigError, OSError) as error:
            logger.error("certificate not reloaded", listener="control", reason=str(error))
            return None
        logger.info("certificate reloaded", listener="control", file=self._settings.cert_file)
        return loaded


class AllowedSubjects:
    """Authorizes clients by the names in their certificates.

    A client that is not listed is rejected; an empty list allows every client that TLS accepts, or
    every client without TLS. Every rejection, and every request that changes the cluster, is
    written to the audit log; the steps of transactions are not.
    """

    def __init__(self, allowed_subjects: Iterable[str] = ()) -> None:
        """Names as in certificates: the common name, or a DNS name."""
        self._allowed = frozenset(allowed_subjects)

    def authorize(self, method: str, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """Log a request; raises `ClusterAuthorizationError` if the client is not allowed."""
        auth_context = context.auth_context()
        names = _names(auth_context)
        peer_names.set(names)
        facts = {
            "principal": _subject(auth_context) or ANONYMOUS,
            "client": context.peer(),
            "api": f"control.{method}",
        }
        if self._allowed and self._allowed.isdisjoint(names):
            audit.warning("access denied", **facts)
            raise ClusterAuthorizationError(
                f"{facts['principal']} may not use the control plane (control.allowedSubjects)"
            )
        if method not in _UNAUDITED:
            audit.info("changed", **facts)


async def open_channel(
    address: str, tls: ClientTls | None, options: Sequence[tuple[str, Any]]
) -> grpc.aio.Channel:
    """A channel to a server, without TLS if there are no settings for it."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options)
    context = _ssl_context(tls)
    if not tls.verify_hostname:
        # gRPC always checks the host name, so it is overridden with the one in the certificate.
        name = await _certificate_name(address, context)
        options = [*options, ("grpc.ssl_target_name_override", name)]
    return grpc.aio.secure_channel(address, _credentials(tls), options)


def _ssl_context(tls: ClientTls) -> ssl.SSLContext:
    """The context of the standard library, which reports problems of the files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.verify_hostname
    context.set_alpn_protocols(["h2"])
    key = tls.key_file or tls.cert_file
    tls_files.load_client_files(context, "client.tls", tls.ca_file, tls.cert_file, key)
    return context


def _credentials(tls: ClientTls) -> grpc.ChannelCredentials:
    key = tls.key_file or tls.cert_file
    return grpc.ssl_channel_credentials(
        *tls_files.read_client_files(tls.ca_file, tls.cert_file, key)
    )


async def _certificate_name(address: str, context: ssl.SSLContext) -> str:
    """A name in the certificate of a server, which must be issued by the right CA."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(HANDSHAKE_SECONDS_MAX):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    except (OSError, TimeoutError) as error:
        reason = str(error) or "timed out"
        raise UnreachableError(address, grpc.StatusCode.UNAVAILABLE.name, reason) from None
    certificate: dict[str, Any] = writer.get_extra_info("peercert")
    writer.transport.abort()
    return _first_name(certificate)


def _first_name(certificate: dict[str, Any]) -> str:
    """One of the names of a certificate.

    >>> _first_name({"subject": ((("commonName", "b"),),), "subjectAltName": (("DNS", "b-0"),)})
    'b-0'
    """
    alternatives = certificate.get("subjectAltName", ())
    hosts = [name for kind, name in alternatives if kind in {"DNS", "IP Address"}]
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    names: list[str] = hosts or [name for kind, name in subject if kind == "commonName"]
    return names[0] if names else ""


def _names(auth_context: Mapping[str, Iterable[bytes]]) -> frozenset[str]:
    """The names of a client, from the gRPC auth context.

    >>> sorted(_names({"x509_common_name": [b"alice"], "peer_dns": [b"a.example.com"]}))
    ['a.example.com', 'alice']
    """
    encoded = (*auth_context.get("x509_common_name", ()), *auth_context.get("peer_dns", ()))
    return frozenset(name.decode(errors="replace") for name in encoded)


def _subject(auth_context: Mapping[str, Iterable[bytes]]) -> str:
    return b"".join(auth_context.get("x509_subject", ())).decode(errors="replace")
