"""The gRPC channel to one etcd member, with or without TLS.

A channel belongs to one store and shares neither connections nor backoff state with others in the
process. It ignores proxy variables of the environment.
"""

import ssl
from pathlib import Path
from typing import Final

import grpc

from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.net import tls_files

RESPONSE_BYTES_MAX: Final = 32 << 20
"""The largest response; ranges are read in pages, and watches in fragments."""

_PING_AFTER_MS: Final = 7_000
"""The keepalive interval of an active connection. etcd closes connections that ping more often than
every 5 s."""
_PING_TIMEOUT_MS: Final = 3_000

_RECONNECT_MS_MIN: Final = 100
_RECONNECT_MS_MAX: Final = 1_000
"""A restarted member is found within a second."""


def open_channel(
    endpoint: str, dial_timeout_ms: int, credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    """Create a channel; it connects on first use."""
    options = (
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
        ("grpc.keepalive_time_ms", _PING_AFTER_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS_MIN),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS_MAX),
        # Despite its name, this is the timeout of one connection attempt.
        ("grpc.min_reconnect_backoff_ms", dial_timeout_ms),
        # A moved member has a new address under the same name.
        ("grpc.dns_min_time_between_resolutions_ms", _RECONNECT_MS_MAX),
    )
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options)
    return grpc.aio.secure_channel(endpoint, credentials, options)


def address(endpoint: str) -> str:
    """The host and port of an endpoint; the settings decide about TLS.

    >>> address("https://etcd-0:2379")
    'etcd-0:2379'
    """
    return endpoint.partition("://")[2] or endpoint


def channel_credentials(settings: Etcd) -> grpc.ChannelCredentials | None:
    """The TLS credentials, or None without TLS."""
    tls = settings.tls
    if not tls.enabled:
        return None
    _check(tls)
    ca_certificates = (
        Path(tls.ca_file).read_bytes() if tls.ca_file else tls_files.system_ca_bundle()
    )
    key = Path(tls.key_file).read_bytes() if tls.key_file else None
    certificate = Path(tls.cert_file).read_bytes() if tls.cert_file else None
    # Without CA certificates gRPC uses its built-in list.
    return grpc.ssl_channel_credentials(ca_certificates, key, certificate)


def _check(tls: EtcdTls) -> None:
    """Reject unusable files; gRPC would only report unreachable members."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file:
        tls_files.load_authorities(context, "etcd.tls", tls.ca_file)
    if tls.cert_file:
        tls_files.load_certificate(context, "etcd.tls", tls.cert_file, tls.key_file)
