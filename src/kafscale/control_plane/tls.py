"""Encryption of the control plane: both sides show certificates, and check each other's.

    ServerTls(settings, files.changed).credentials    # What a server listens with.
    await open_channel(address, tls, options)         # What a client asks over.

The laws: whoever shows no certificate of the right authority gets no further than that. A server
looks at its files whenever somebody connects; new ones that are of no use are told once and the
former stay in use. Connections keep what they have begun with.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import grpc

from kafscale.config.sections.security import ClientTls, PeerTls
from kafscale.control_plane.errors import UnreachableError
from kafscale.errors import ConfigError
from kafscale.net import tls_files
from kafscale.observability.logging import get_logger

log = get_logger(__name__)

LOOK_SECONDS_MAX: Final = 10.0
"""How long a server may take to show its certificate."""


class ServerTls:
    """The certificate of a server, and whom it trusts."""

    def __init__(self, settings: PeerTls, changed: Callable[[], bool]) -> None:
        """`changed` says whether the files have changed since it was asked last.

        Raises `ConfigError` where they are of no use.
        """
        self._settings = settings
        self._changed = changed
        self.credentials = grpc.dynamic_ssl_server_credentials(
            self._load(),
            self._fetch,  # type: ignore[arg-type] # The types forget that it may answer None.
            require_client_authentication=True,
        )

    def _load(self) -> grpc.ServerCertificateConfiguration:
        settings = self._settings
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls_files.load_certificate(context, "control.tls", settings.cert_file, settings.key_file)
        tls_files.load_authorities(context, "control.tls", settings.ca_file)
        shown = Path(settings.key_file).read_bytes(), Path(settings.cert_file).read_bytes()
        return grpc.ssl_server_certificate_configuration(
            [shown], Path(settings.ca_file).read_bytes()
        )

    def _fetch(self) -> grpc.ServerCertificateConfiguration | None:
        """What to use from now on; None for what there is. Asked by threads of gRPC's own."""
        if not self._changed():
            return None
        try:
            loaded = self._load()
        except (ConfigError, OSError) as error:
            log.error("certificate not reloaded", listener="control", reason=str(error))  # noqa: TRY400
            return None
        log.info("certificate reloaded", listener="control", file=self._settings.cert_file)
        return loaded


async def open_channel(
    address: str, tls: ClientTls | None, options: Sequence[tuple[str, Any]]
) -> grpc.aio.Channel:
    """A channel to a server, in the clear where there are no settings for TLS."""
    if tls is None:
        return grpc.aio.insecure_channel(address, options)
    context = _checked(tls)
    if not tls.check_host:
        # gRPC always compares names; so it is told to look for the one that will be found.
        name = await _shown_name(address, context)
        options = [*options, ("grpc.ssl_target_name_override", name)]
    return grpc.aio.secure_channel(address, _credentials(tls), options)


def _checked(tls: ClientTls) -> ssl.SSLContext:
    """What the standard library would connect with: it tells what is wrong with files."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = tls.check_host
    context.set_alpn_protocols(["h2"])
    if tls.ca_file:
        tls_files.load_authorities(context, "client.tls", tls.ca_file)
    else:
        context.load_default_certs()
    if tls.cert_file:
        tls_files.load_certificate(
            context, "client.tls", tls.cert_file, tls.key_file or tls.cert_file
        )
    return context


def _credentials(tls: ClientTls) -> grpc.ChannelCredentials:
    certificate = Path(tls.cert_file).read_bytes() if tls.cert_file else None
    key = Path(tls.key_file or tls.cert_file).read_bytes() if tls.cert_file else None
    authorities = Path(tls.ca_file).read_bytes() if tls.ca_file else tls_files.system_ca_bundle()
    return grpc.ssl_channel_credentials(authorities, key, certificate)


async def _shown_name(address: str, context: ssl.SSLContext) -> str:
    """A name that is in the certificate of a server, which has to be from the right authority."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(LOOK_SECONDS_MAX):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=context)
    except (OSError, TimeoutError) as error:
        reason = str(error) or "no answer in time"
        raise UnreachableError(address, grpc.StatusCode.UNAVAILABLE.name, reason) from None
    certificate: dict[str, Any] = writer.get_extra_info("peercert")
    writer.transport.abort()
    return _a_name(certificate)


def _a_name(certificate: dict[str, Any]) -> str:
    """One of the names that a certificate is for, as the standard library tells of them.

    >>> _a_name({"subject": ((("commonName", "broker"),),), "subjectAltName": (("DNS", "b-0"),)})
    'b-0'
    """
    alternatives = certificate.get("subjectAltName", ())
    hosts = [name for kind, name in alternatives if kind in {"DNS", "IP Address"}]
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    names: list[str] = hosts or [name for kind, name in subject if kind == "commonName"]
    return names[0] if names else ""
