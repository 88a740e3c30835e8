"""The connection to one member of etcd: a gRPC channel, and how it encrypts.

The laws: a channel belongs to one store, and shares neither connections nor what it remembers of
failures with others in the process; it goes where the settings say, whatever proxies the
environment names. When to use it is left to `member`.
"""

import ssl
from pathlib import Path
from typing import Final

import grpc

from kafscale.config.sections.etcd import Etcd, EtcdTls
from kafscale.net import tls_files

RESPONSE_BYTES_MAX: Final = 32 << 20
"""What one response may hold; ranges come in pages that fit, watches in fragments."""

_PING_AFTER_MS: Final = 7_000
"""How long a connection in use may be silent before it is asked for a sign of life. etcd hangs up
on those who ask more often than every 5 s."""
_PING_TIMEOUT_MS: Final = 3_000

_RECONNECT_MS_MIN: Final = 100
_RECONNECT_MS_MAX: Final = 1_000
"""A member that comes back is found within a second."""


def open_channel(
    endpoint: str, dial_timeout_ms: int, credentials: grpc.ChannelCredentials | None
) -> grpc.aio.Channel:
    """A channel that is not connected yet."""
    options = (
        ("grpc.enable_http_proxy", 0),
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.max_receive_message_length", RESPONSE_BYTES_MAX),
        ("grpc.keepalive_time_ms", _PING_AFTER_MS),
        ("grpc.keepalive_timeout_ms", _PING_TIMEOUT_MS),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.initial_reconnect_backoff_ms", _RECONNECT_MS_MIN),
        ("grpc.max_reconnect_backoff_ms", _RECONNECT_MS_MAX),
        # In spite of its name, this is how long one attempt to connect may take.
        ("grpc.min_reconnect_backoff_ms", dial_timeout_ms),
        # A member that was moved has another address under the same name.
        ("grpc.dns_min_time_between_resolutions_ms", _RECONNECT_MS_MAX),
    )
    if credentials is None:
        return grpc.aio.insecure_channel(endpoint, options)
    return grpc.aio.secure_channel(endpoint, credentials, options)


def address(endpoint: str) -> str:
    """The host and port of an endpoint; whether to encrypt is said in the settings.

    >>> address("https://etcd-0:2379")
    'etcd-0:2379'
    """
    return endpoint.partition("://")[2] or endpoint


def channel_credentials(settings: Etcd) -> grpc.ChannelCredentials | None:
    """What a channel encrypts with, if it does."""
    tls = settings.tls
    if not tls.enabled:
        return None
    _check(tls)
    authorities = Path(tls.ca_file).read_bytes() if tls.ca_file else tls_files.system_authorities()
    key = Path(tls.key_file).read_bytes() if tls.key_file else None
    certificate = Path(tls.cert_file).read_bytes() if tls.cert_file else None
    # Without authorities gRPC brings a list of its own.
    return grpc.ssl_channel_credentials(authorities, key, certificate)


def _check(tls: EtcdTls) -> None:
    """Refuse files that are of no use; gRPC would only tell of members that cannot be reached."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if tls.ca_file:
        tls_files.trust(context, "etcd.tls", tls.ca_file)
    if tls.cert_file:
        tls_files.show(context, "etcd.tls", tls.cert_file, tls.key_file)
