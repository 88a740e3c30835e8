"""Settings of etcd."""

from dataclasses import dataclass, field

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Duration, StringList, Text
from kafscale.text.units import MINUTE_MS, SECOND_MS

ENDPOINT = Text("of the form host:port or https://host:port", r"(https?://)?[^\s/@,]+:\d{1,5}")
_OPTIONAL_TEXT = Text(optional=True)
_TIMEOUT = Duration(100, 10 * MINUTE_MS, unit_in_name=False)


@dataclass(frozen=True, kw_only=True)
class EtcdTls:
    """Encryption of the connection to etcd."""

    enabled: bool = setting(False, Boolean())
    """Whether connections to etcd use TLS. False, because a first cluster has no certificates yet;
    a production cluster should say true."""

    cert_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the client certificate to show to etcd, as PEM. Empty, the default, shows
    none."""

    key_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the private key that belongs to the certificate, as PEM. Empty, the default, goes
    with no certificate."""

    ca_file: str = setting("", _OPTIONAL_TEXT)
    """The file of the authorities that etcd's certificate is checked against, as PEM. Empty, the
    default, trusts those of the operating system."""


@dataclass(frozen=True, kw_only=True)
class Etcd:
    """etcd, where the cluster keeps what it knows."""

    endpoints: tuple[str, ...] = setting((), StringList(ENDPOINT))
    """The members of the etcd cluster. Empty, the default, is the embedded mode: metadata is kept
    in an SQLite file in the data directory, for one broker alone."""

    dial_timeout_ms: int = setting(5 * SECOND_MS, _TIMEOUT, key="dialTimeout")
    """How long connecting to one member may take before the next is tried. 5s is ample inside a
    region."""

    request_timeout_ms: int = setting(10 * SECOND_MS, _TIMEOUT, key="requestTimeout")
    """How long one request to etcd may take. 10s outlasts the election of a new leader in etcd."""

    username: str = setting("", _OPTIONAL_TEXT)
    """The user to sign in to etcd as. Empty, the default, signs in as nobody, as a new etcd
    expects."""

    password: str = setting("", _OPTIONAL_TEXT, secret=True)
    """The password of that user. No default, because no secret is one."""

    tls: EtcdTls = field(default_factory=EtcdTls)
