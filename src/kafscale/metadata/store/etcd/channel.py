"""The gRPC channel to one etcd member, with or without TLS.

A channel belongs to one store and shares neither connections nor backoff state with others in the
process. It ignores proxy variables of the environment.
"""

import ssl
from typing import Final

import grpc

from kafscale.config.sections.etcd import Etcd
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
    files = (tls.ca_file, tls.cert_file, tls.key_file)
    # Reject unusable files: gRPC would only report unreachable members.
    tls_files.load_client_files(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "etcd.tls", *files)
    # Without CA certificates gRPC uses its built-in list.
    return grpc.ssl_channel_credentials(*tls_files.read_client_files(*files))
