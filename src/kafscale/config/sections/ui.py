"""Settings of the web console: login, listener, TLS and polling."""

from dataclasses import dataclass
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import HOST, PORT, Boolean, Duration, Integer, StringList, Text

_NETWORK: Final = Text("an address or a network", r"[0-9A-Fa-f.:]+(/\d{1,3})?")
_FILE: Final = Text("a file in PEM", optional=True)
_URL: Final = Text(
    "a URL such as http://registry:8081", r"https?://[^\s/@?#]+(/[^\s@?#]*)?", optional=True
)


@dataclass(frozen=True, kw_only=True)
class Ui:
    """The web console, `kafscale console`."""

    username: str = setting("", Text(optional=True))
    """The user name for the console; it can be set by its variable only. There is no default:
    without a name and a password no login is possible."""

    password: str = setting("", Text(optional=True), secret=True)
    """The password for the console; it can be set by its variable only. There is no default,
    because a default password would be public."""

    host: str = setting("127.0.0.1", HOST)
    """The address of the console. Only the local machine by default; configure TLS before you
    expose it."""

    port: int = setting(8080, PORT)
    """The port of the console; 0 takes any free port. 8080 is a usual port for internal web
    pages."""

    cert_file: str = setting("", _FILE)
    """The certificate chain for serving the console over TLS. Empty, the default, serves it without
    TLS."""

    key_file: str = setting("", _FILE)
    """The private key of that certificate, unencrypted. Empty by default."""

    tls_terminated_upstream: bool = setting(False, Boolean())
    """Whether a proxy in front of the console, such as an Ingress, terminates TLS. Cookies are then
    marked as secure, and browsers must use HTTPS only. False, because a new installation has
    no proxy."""

    trusted_proxies: tuple[str, ...] = setting((), StringList(_NETWORK))
    """Proxies whose X-Forwarded-For header is trusted: addresses or networks, such as 10.0.0.0/8.
    Failed logins are counted by client address, so that an attacker does not delay the logins of
    other users. Empty, the default, trusts none."""

    session_hours: int = setting(12, Integer(1, 720))
    """How long a login lasts. 12 hours are a working day."""

    session_key: str = setting("", Text(optional=True), secret=True)
    """The key that signs session cookies, together with the password: any long random text. Empty,
    the default, generates a key at each start, which ends all sessions. Several consoles behind one
    name need the same key."""

    refresh_interval_ms: int = setting(2_000, Duration(500, 60_000))
    """How often the console polls the brokers; it lists topics and groups at every fifth poll. In
    milliseconds. 2 seconds show changes promptly and cause little load."""

    schema_registry_url: str = setting("", _URL, variables=("KAFSCALE_SCHEMA_REGISTRY_URL",))
    """The URL of a schema registry with Confluent's REST API, for decoding records. Empty, the
    default, uses none."""
