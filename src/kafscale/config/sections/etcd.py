"""Settings of etcd.

Without endpoints, metadata is in an SQLite file in the data directory.
"""

from dataclasses import dataclass, field

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Duration, Server, Size, StringList, Text
from kafscale.text.units import GIB, MIB, MINUTE_MS, SECOND_MS

ENDPOINT = Server("of the form host:port or https://host:port", r"(https?://)?[^\s/@,]+:\d{1,5}")
_OPTIONAL_TEXT = Text(optional=True)
_TIMEOUT = Duration(100, 10 * MINUTE_MS, unit_in_name=False)


@dataclass(frozen=True, kw_only=True)
class EtcdTls:
    """TLS of the connection to etcd."""

    enabled: bool = setting(False, Boolean())
    """Whether connections to etcd use TLS. False, because a new cluster has no certificates yet;
    enable it in production."""

    cert_file: str = setting("", _OPTIONAL_TEXT)
    """The client certificate for etcd, as PEM. Empty, the default, sends none."""

    key_file: str = setting("", _OPTIONAL_TEXT)
    """The private key of the certificate, as PEM. Empty by default."""

    ca_file: str = setting("", _OPTIONAL_TEXT)
    """The CA certificates that verify etcd's certificate, as PEM. Empty, the default, uses those of
    the operating system."""


@dataclass(frozen=True, kw_only=True)
class Etcd:
    """etcd, which stores the metadata of a cluster."""

    endpoints: tuple[str, ...] = setting((), StringList(ENDPOINT))
    """The etcd endpoints. Empty, the default, is the embedded mode: metadata is in an SQLite file
    in the data directory, for a single broker."""

    dial_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="dialTimeout")
    """The timeout of a connection attempt to one member before the next is tried. 5s are ample
    within a region."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """The timeout of a request to etcd. 10s are longer than a leader election of etcd."""

    quota_bytes: int = setting(2 * GIB, Size(MIB, 1024 * GIB), key="quota")
    """The maximum size of etcd's database, its `--quota-backend-bytes`, if etcd does not report it,
    as before version 3.6. Offset commits are throttled above 70 % of it. 2 GiB, etcd's default."""

    username: str = setting("", _OPTIONAL_TEXT)
    """The etcd user. Empty by default: no authentication."""

    password: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The password of that user. Empty by default."""

    password_file: str = setting("", _OPTIONAL_TEXT)
    """A file that contains this password instead, such as one of a mounted Kubernetes Secret. It is
    read again whenever a broker authenticates, so that the password can change without a restart.
    Empty by default."""

    tls: EtcdTls = field(default_factory=EtcdTls)
