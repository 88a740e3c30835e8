"""Settings of encryption, authentication and authorization.

Everything is disabled by default, as specified, and denies by default once it is enabled. Names are
Kafka's where Kafka has the setting. A setting that may differ by listener accepts an entry for all
listeners (`required`), entries for single ones (`EXTERNAL=required`), or both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Choice, Duration, Size, StringList, Text
from kafscale.text.units import HOUR_MS, KIB, MIB, MINUTE_MS, SECOND_MS

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
ADDRESS = Text("of the form host:port", r"[0-9A-Za-z._-]+:\d{1,5}", optional=True)

_DAY_MS: Final = 24 * HOUR_MS
_NAME = r"[A-Za-z0-9_-]+"
FILE = Text("a file", optional=True)
_FILES = StringList(Text("a file, or LISTENER=file", rf"(?:{_NAME}=)?[^=,\s][^=,]*"))
_URL = Text(
    "a URL that begins with https:// or http:// and contains no password",
    r"https?://[^\s@]+",
    optional=True,
)
_TEXT = Text(optional=True)
_PRINCIPAL = Text("a principal, such as User:alice", r"[A-Za-z]+:.+")


def for_listener(values: Sequence[str], listener: str, default: str = "") -> str:
    """The value for a listener: its own entry, or else the one for all listeners.

    >>> for_listener(("none", "EXTERNAL=required"), "EXTERNAL")
    'required'
    >>> for_listener(("none", "EXTERNAL=required"), "INTERNAL")
    'none'
    """
    matching = all_for_listener(values, listener)
    return matching[-1] if matching else default


def all_for_listener(values: Sequence[str], listener: str) -> tuple[str, ...]:
    """All values for a listener: its own entries, or else those for all listeners."""
    own = tuple(value.partition("=")[2] for value in values if value.partition("=")[0] == listener)
    return own or tuple(value for value in values if "=" not in value)


@dataclass(frozen=True, kw_only=True)
class Tls:
    """TLS of the listeners with the protocols SSL and SASL_SSL."""

    cert_file: tuple[str, ...] = setting((), _FILES)
    """The server certificate as PEM, followed by its intermediate certificates. Empty, the default,
    disables TLS. The file is read again when it changes; open connections are kept."""

    key_file: tuple[str, ...] = setting((), _FILES)
    """The private key of the certificate, as PEM. Empty, the default, reads it from `certFile`."""

    key_password: str = setting("", _TEXT, secret=True)
    """The password of the private key. Empty, the default, for an unencrypted key."""

    ca_file: tuple[str, ...] = setting((), _FILES)
    """The CA certificates that verify client certificates, as PEM. Empty, the default, trusts none,
    so that client certificates cannot be requested."""

    crl_file: tuple[str, ...] = setting((), _FILES)
    """The certificate revocation lists of these CAs, as PEM: one for each CA that issues client
    certificates. Revoked certificates are rejected, and so are all clients once the list has
    expired: replace it before, it is read again when it changes. Open connections are kept. Empty,
    the default, checks no revocation; certificates that live for days need none."""

    client_auth: tuple[str, ...] = setting(
        ("none",),
        StringList(
            Text(
                "none, requested or required, or one of them for a LISTENER=",
                rf"(?:{_NAME}=)?(?:none|requested|required)",
            )
        ),
    )
    """Whether client certificates are requested: `none`; `requested` authenticates clients with a
    certificate and treats others as ANONYMOUS; `required` rejects clients without one. `none`, as
    in Kafka."""

    min_version: str = setting("1.2", Choice(("1.2", "1.3")))
    """The minimum TLS version. 1.2, because some clients in use support no newer one; older
    versions are insecure."""

    ciphers: str = setting("", _TEXT)
    """The cipher list for TLS 1.2, in OpenSSL's format. Empty, the default, allows ciphers with
    forward secrecy only (ECDHE with AES-GCM or ChaCha20)."""

    principal_mapping_rules: str = setting("DEFAULT", Text())
    """How the subject of a client certificate becomes a principal, in Kafka's format:
    comma-separated rules like `RULE:^CN=(.*?),.*$/$1/L`; the first match wins. The default,
    `DEFAULT`, uses the whole subject, which is unambiguous."""

    reload_interval_ms: int = setting(10 * SECOND_MS, Duration(100, HOUR_MS))
    """How often the files are checked for changes. In milliseconds. 10 seconds are cheap, and
    certificates are renewed days before they expire."""


@dataclass(frozen=True, kw_only=True)
class Sasl:
    """Authentication on listeners with the protocols SASL_PLAINTEXT and SASL_SSL."""

    enabled_mechanisms: tuple[str, ...] = setting(
        (),
        StringList(
            Text(
                f"one of {', '.join(MECHANISMS)}, or one of them for a LISTENER=",
                rf"(?:{_NAME}=)?(?:{'|'.join(MECHANISMS)})",
            )
        ),
    )
    """The SASL mechanisms that are offered. Entries for a single listener replace those for all
    listeners. Empty, the default, offers none; a SASL listener then refuses to start."""

    plain_users: str = setting("", _TEXT, secret=True)
    """The users of PLAIN with their passwords, as `alice:secret,bob:other`. Empty by default; a
    file is safer."""

    plain_users_file: str = setting("", FILE)
    """A file with a user and a password on each line, as `alice:secret`, or a directory with one
    file per user that contains the password, as in a mounted Kubernetes Secret. Read again when it
    changes. Empty by default."""

    oauth_jwks_file: str = setting("", FILE)
    """A JWKS file with the keys that verify OAUTHBEARER tokens. Read again when it changes. Empty
    by default."""

    oauth_jwks_url: str = setting("", _URL)
    """The URL of a JWKS with these keys. Empty by default."""

    oauth_jwks_refresh_ms: int = setting(HOUR_MS, Duration(SECOND_MS, _DAY_MS))
    """How often the URL is fetched; a token with an unknown key triggers an earlier fetch. In
    milliseconds. An hour, as in Kafka."""

    oauth_expected_issuer: str = setting("", _TEXT)
    """The required issuer of tokens (`iss`). Empty, the default, accepts any issuer."""

    oauth_expected_audience: tuple[str, ...] = setting((), StringList(Text()))
    """The accepted audiences of tokens (`aud`); one match is enough. Empty, the default, accepts
    any audience."""

    oauth_required_scopes: tuple[str, ...] = setting((), StringList(Text()))
    """The scopes that a token must have, all of them. Empty, the default, requires none."""

    oauth_principal_claim: str = setting("sub", Text())
    """The claim with the user name. `sub`, as in Kafka."""

    oauth_scope_claim: str = setting("scope", Text())
    """The claim with the scopes, as a list or as space-separated text. `scope`, as in Kafka."""

    oauth_groups_claim: str = setting("groups", Text())
    """The claim with the groups of the user; ACLs for `Group:name` then apply to the user, too.
    `groups` is what most identity providers send."""

    oauth_clock_skew_sec: int = setting(30, Duration(0, 600, unit="s"))
    """The tolerated difference between the clocks of the issuer and of the broker. In seconds. 30,
    as in Kafka."""

    max_reauth_ms: int = setting(0, Duration(0, 30 * _DAY_MS), key="connectionsMaxReauthMs")
    """After how long a client must authenticate again on its connection (KIP-368). In milliseconds.
    0, as in Kafka, requires it only when a token expires."""

    receive_bytes_max: int = setting(512 * KIB, Size(KIB, 100 * MIB), key="serverMaxReceiveSize")
    """The maximum request size before authentication, in bytes. 512 KiB, as in Kafka."""

    failed_authentication_delay_ms: int = setting(
        100, Duration(0, 10 * SECOND_MS), key="failedAuthenticationDelayMs"
    )
    """The delay of the response to a failed authentication; it doubles with every failure from the
    same address. After failures, further attempts from the address and for the user are answered
    with such a delay even if they are right, up to 2 s, and those of one address take turns. In
    milliseconds. 100, as in Kafka."""

    failed_authentication_delay_ms_max: int = setting(
        10 * SECOND_MS, Duration(0, MINUTE_MS), key="failedAuthenticationDelayMaxMs"
    )
    """The maximum of that delay. In milliseconds. After 10 seconds most clients still wait."""


@dataclass(frozen=True, kw_only=True)
class Authorization:
    """Authorization by ACLs."""

    enabled: bool = setting(False, Boolean())
    """Whether requests are authorized by ACLs and roles. False, as specified; once it is true,
    everything that no ACL allows is denied."""

    super_users: tuple[str, ...] = setting((), StringList(_PRINCIPAL))
    """Principals that may do everything, for example to create the first ACLs. Empty by default."""

    allow_everyone_if_no_acl_found: bool = setting(False, Boolean())
    """Whether resources without any ACL may be used by everyone. False, as in Kafka."""


@dataclass(frozen=True, kw_only=True)
class PeerTls:
    """Mutual TLS of the control plane."""

    enabled: bool = setting(False, Boolean())
    """Whether the control plane requires TLS and a client certificate. False, because a new cluster
    has no certificates yet; brokers whose clients have to authenticate then serve it on a loopback
    address only."""

    cert_file: str = setting("", FILE)
    """The certificate of this broker, as PEM, for its server and its connections to other brokers.
    Empty by default, without TLS."""

    key_file: str = setting("", FILE)
    """The private key of the certificate, as PEM. Empty by default."""

    ca_file: str = setting("", FILE)
    """The CA certificates that verify the other side, as PEM. Empty by default, without TLS."""

    def as_client(self) -> "ClientTls | None":
        """The TLS settings for connections to other brokers; None without TLS."""
        if not self.enabled:
            return None
        return ClientTls(ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)


@dataclass(frozen=True, kw_only=True)
class Control:
    """The control plane."""

    tls: PeerTls = field(default_factory=PeerTls)

    allowed_subjects: tuple[str, ...] = setting((), StringList(Text()))
    """The certificate names (CN or DNS) of the clients that may use the control plane. Empty, the
    default, allows every certificate of the CA."""

    operator_address: str = setting("", ADDRESS)
    """The address of the Kubernetes operator's control plane, which brokers send metrics to. Empty
    by default: no operator."""


@dataclass(frozen=True, kw_only=True)
class ClientTls:
    """TLS of the commands that connect to brokers."""

    ca_file: str = setting("", FILE)
    """The CA certificates that verify brokers, as PEM. Empty, the default, uses those of the
    operating system."""

    cert_file: str = setting("", FILE)
    """The client certificate, as PEM. Empty by default."""

    key_file: str = setting("", FILE)
    """The private key of the certificate, as PEM. Empty, the default, reads it from `certFile`."""

    verify_hostname: bool = setting(True, Boolean())
    """Whether the certificate of a broker must match its host name. True; false accepts any
    certificate of the CA for any broker."""
