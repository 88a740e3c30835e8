"""Settings of who may come in: encryption, authentication and authorization.

The law: all of it is off by default, as the spec asks, and closed by default once it is on. Names
are Kafka's where Kafka has a name. A setting that may differ between listeners takes an entry for
all of them (`required`), entries for single ones (`EXTERNAL=required`), or both.
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
_FILE = Text("a file", optional=True)
_FILES = StringList(Text("a file, or LISTENER=file", rf"(?:{_NAME}=)?[^=,\s][^=,]*"))
_URL = Text("a URL that begins with https:// or http://", r"https?://\S+", optional=True)
_TEXT = Text(optional=True)
_PRINCIPAL = Text("a principal, such as User:alice", r"[A-Za-z]+:.+")


def for_listener(values: Sequence[str], listener: str, default: str = "") -> str:
    """What is set for a listener: its own entry, or else the one for all of them.

    >>> for_listener(("none", "EXTERNAL=required"), "EXTERNAL")
    'required'
    >>> for_listener(("none", "EXTERNAL=required"), "INTERNAL")
    'none'
    """
    found = all_for_listener(values, listener)
    return found[-1] if found else default


def all_for_listener(values: Sequence[str], listener: str) -> tuple[str, ...]:
    """All that is set for a listener: its own entries, or else those for all of them."""
    own = tuple(value.partition("=")[2] for value in values if value.partition("=")[0] == listener)
    return own or tuple(value for value in values if "=" not in value)


@dataclass(frozen=True, kw_only=True)
class Tls:
    """Encryption of the listeners that ask for it: SSL and SASL_SSL."""

    cert_file: tuple[str, ...] = setting((), _FILES)
    """The certificate that clients are shown, as PEM, followed by those of the authorities between
    it and the root. Empty, the default, has no listener encrypt. It is read again when it changes;
    connections stay."""

    key_file: tuple[str, ...] = setting((), _FILES)
    """The private key that belongs to the certificate, as PEM. Empty, the default, takes it from
    `certFile`."""

    key_password: str = setting("", _TEXT, secret=True)
    """What the private key is encrypted with. Empty, the default, for a key that is not."""

    ca_file: tuple[str, ...] = setting((), _FILES)
    """The authorities that certificates of clients are checked against, as PEM. Empty, the default,
    trusts none, so that clients cannot be asked for one."""

    client_auth: tuple[str, ...] = setting(
        ("none",),
        StringList(
            Text(
                "none, requested or required, or one of them for a LISTENER=",
                rf"(?:{_NAME}=)?(?:none|requested|required)",
            )
        ),
    )
    """Whether clients are asked for a certificate: `none`, `requested` takes those who have one by
    its name and lets others in as ANONYMOUS, `required` refuses them. `none`, as in Kafka."""

    min_version: str = setting("1.2", Choice(("1.2", "1.3")))
    """The oldest version of TLS that is spoken. 1.2, because clients in use know no newer one; what
    is older is broken."""

    ciphers: str = setting("", _TEXT)
    """The ciphers of TLS 1.2, as OpenSSL writes lists of them. Empty, the default, takes those that
    keep past conversations secret when a key is lost (ECDHE with AES-GCM or ChaCha20)."""

    principal_mapping_rules: str = setting("DEFAULT", Text())
    """How the name in a client's certificate becomes a principal, in Kafka's words: rules like
    `RULE:^CN=(.*?),.*$/$1/L` separated by commas, the first that matches wins. The default,
    `DEFAULT`, takes the whole name, which is as long as it is unmistakable."""

    reload_interval_ms: int = setting(10 * SECOND_MS, Duration(100, HOUR_MS))
    """How often the files are looked at for changes. In milliseconds; 10 seconds cost nothing, and
    a certificate is renewed days before it ends."""


@dataclass(frozen=True, kw_only=True)
class Sasl:
    """Authentication on the listeners that ask for it: SASL_PLAINTEXT and SASL_SSL."""

    enabled_mechanisms: tuple[str, ...] = setting(
        (),
        StringList(
            Text(
                f"one of {', '.join(MECHANISMS)}, or one of them for a LISTENER=",
                rf"(?:{_NAME}=)?(?:{'|'.join(MECHANISMS)})",
            )
        ),
    )
    """The mechanisms that are offered. Entries for a single listener replace those for all of them.
    Empty, the default, offers none, so that a listener that needs one refuses to start."""

    plain_users: str = setting("", _TEXT, secret=True)
    """The users of PLAIN and their passwords, as `alice:secret,bob:other`. Empty, the default, has
    none; a file keeps them better."""

    plain_users_file: str = setting("", _FILE)
    """A file with a user and a password on each line, as `alice:secret`, or a directory with one
    file per user that holds the password, which is how Kubernetes mounts a secret. Read again when
    it changes. Empty, the default, names none."""

    oauth_jwks_file: str = setting("", _FILE)
    """The keys that tokens of OAUTHBEARER are signed with, as a JWKS. Read again when it changes.
    Empty, the default, names none."""

    oauth_jwks_url: str = setting("", _URL)
    """Where these keys are fetched from. Empty, the default, fetches none."""

    oauth_jwks_refresh_ms: int = setting(HOUR_MS, Duration(SECOND_MS, _DAY_MS))
    """How often the keys are fetched again; a token signed with a key that is not known has them
    fetched sooner. In milliseconds; an hour, as in Kafka."""

    oauth_expected_issuer: str = setting("", _TEXT)
    """Who has to have issued a token (`iss`). Empty, the default, asks for nobody in particular."""

    oauth_expected_audience: tuple[str, ...] = setting((), StringList(Text()))
    """For whom a token has to be (`aud`); one of them is enough. Empty, the default, takes tokens
    that are for anybody."""

    oauth_required_scopes: tuple[str, ...] = setting((), StringList(Text()))
    """What a token has to allow, all of it. Empty, the default, asks for nothing."""

    oauth_principal_claim: str = setting("sub", Text())
    """The claim that names the user. `sub`, as in Kafka."""

    oauth_scope_claim: str = setting("scope", Text())
    """The claim that lists what the token allows, as a list or as words. `scope`, as in Kafka."""

    oauth_groups_claim: str = setting("groups", Text())
    """The claim that lists the groups of the user; rules for `Group:name` then hold for the user as
    well. `groups` is what most identity providers send."""

    oauth_clock_skew_sec: int = setting(30, Duration(0, 600, unit="s"))
    """How far the clocks of the issuer and of this broker may be apart. In seconds; 30, as in
    Kafka."""

    max_reauth_ms: int = setting(0, Duration(0, 30 * _DAY_MS), key="connectionsMaxReauthMs")
    """After how long a client has to authenticate again on the same connection (KIP-368). In
    milliseconds; 0, as in Kafka, never asks for it but when a token ends."""

    receive_bytes_max: int = setting(512 * KIB, Size(KIB, 100 * MIB), key="serverMaxReceiveSize")
    """The largest request of somebody who has not authenticated, in bytes. 512 KiB, as in Kafka."""

    failed_delay_ms: int = setting(100, Duration(0, 10 * SECOND_MS), key="failedDelayMs")
    """How long the answer to a failed login is held back; it doubles with every failure from the
    same address. In milliseconds; 100, as in Kafka."""

    failed_delay_ms_max: int = setting(
        10 * SECOND_MS, Duration(0, MINUTE_MS), key="failedDelayMaxMs"
    )
    """The longest such delay. In milliseconds; after 10 seconds most clients still listen."""


@dataclass(frozen=True, kw_only=True)
class Authorization:
    """Whether rules decide about who may do what."""

    enabled: bool = setting(False, Boolean())
    """Whether what a client asks for is checked against ACLs and roles. False, as the spec says;
    once it is true, what no rule allows is denied."""

    super_users: tuple[str, ...] = setting((), StringList(_PRINCIPAL))
    """Those who may do everything: the first rules have to come from somebody. Empty, the default,
    has none."""

    allow_everyone_if_no_acl_found: bool = setting(False, Boolean())
    """Whether anybody may use what no rule speaks of. False, as in Kafka."""


@dataclass(frozen=True, kw_only=True)
class PeerTls:
    """Encryption of the control plane; both sides show certificates."""

    enabled: bool = setting(False, Boolean())
    """Whether the control plane is served over TLS alone, at `broker.controlPort`, to those who
    show a certificate. False, because a first cluster has no certificates yet."""

    cert_file: str = setting("", _FILE)
    """The certificate of this broker, as PEM; it shows it to those who ask, and when it asks others
    itself. Empty, the default, goes with no TLS."""

    key_file: str = setting("", _FILE)
    """The private key that belongs to the certificate, as PEM. Empty, the default, goes with no
    certificate."""

    ca_file: str = setting("", _FILE)
    """The authorities that certificates of the others are checked against, as PEM. Empty, the
    default, goes with no TLS."""

    def as_client(self) -> "ClientTls | None":
        """How this broker asks others; None stands for in the clear."""
        if not self.enabled:
            return None
        return ClientTls(ca_file=self.ca_file, cert_file=self.cert_file, key_file=self.key_file)


@dataclass(frozen=True, kw_only=True)
class Control:
    """The control plane."""

    tls: PeerTls = field(default_factory=PeerTls)

    allowed_names: tuple[str, ...] = setting((), StringList(Text()))
    """The names in the certificates (CN or DNS) of those who may use the control plane. Empty, the
    default, lets everybody in whose certificate is from the right authority."""

    operator_address: str = setting("", ADDRESS)
    """The control plane of the Kubernetes operator: brokers send it samples of what they measure.
    Empty, the default, has no operator to send them to."""


@dataclass(frozen=True, kw_only=True)
class ClientTls:
    """How commands check brokers, and show who they are."""

    ca_file: str = setting("", _FILE)
    """The authorities that certificates of brokers are checked against, as PEM. Empty, the default,
    trusts those of the operating system."""

    cert_file: str = setting("", _FILE)
    """The certificate to show to brokers, as PEM. Empty, the default, shows none."""

    key_file: str = setting("", _FILE)
    """The private key that belongs to the certificate, as PEM. Empty, the default, takes it from
    `certFile`."""

    check_host: bool = setting(True, Boolean())
    """Whether a broker's certificate has to be for the name under which it is reached. True; false
    lets any certificate of the authority pass for any broker."""
