"""Settings of the web console: who gets in, where it listens, and what it looks at."""

from dataclasses import dataclass
from typing import Final

from kafscale.config.schema import setting
from kafscale.config.types import Boolean, Duration, Integer, StringList, Text

_HOST: Final = Text("a host name or an address", r"[0-9A-Za-z._:%-]+")
_NETWORK: Final = Text("an address or a network", r"[0-9A-Fa-f.:]+(/\d{1,3})?")
_FILE: Final = Text("a file in PEM", optional=True)
_URL: Final = Text(
    "a URL such as http://registry:8081", r"https?://[^\s/@?#]+(/[^\s@?#]*)?", optional=True
)


@dataclass(frozen=True, kw_only=True)
class Ui:
    """The web console, `kafscale console`."""

    username: str = setting("", Text(optional=True))
    """The name to sign in to the console with; only its variable sets it. There is no default on
    purpose: without a name and a password nobody can sign in."""

    password: str = setting("", Text(optional=True), secret=True)
    """The password to sign in to the console with; only its variable sets it. There is no default,
    because everybody would know it."""

    host: str = setting("127.0.0.1", _HOST)
    """The address on which the console is served. Only this machine by default: whoever opens it to
    others is to think of TLS first."""

    port: int = setting(8080, Integer(0, 65535))
    """The port on which the console is served; 0 takes any free one. 8080 is where people look for
    web pages that are not for everybody."""

    cert_file: str = setting("", _FILE)
    """The certificate to serve the console over TLS with, and those of who issued it. Empty, the
    default, serves without TLS."""

    key_file: str = setting("", _FILE)
    """The private key of that certificate, not encrypted. Empty is the default."""

    behind_tls: bool = setting(False, Boolean())
    """Whether browsers reach the console over TLS that something in front of it ends, such as an
    Ingress: cookies are then marked as secure, and browsers are told to stay with TLS. False,
    because a first try has nothing in front."""

    trusted_proxies: tuple[str, ...] = setting((), StringList(_NETWORK))
    """What stands in front of the console and is believed when it says in X-Forwarded-For whom it
    asks for: addresses or networks, such as 10.0.0.0/8. Failed logins count by that address, so
    that one who guesses locks out nobody else. Empty, the default, believes nobody."""

    session_hours: int = setting(12, Integer(1, 720))
    """How long somebody stays signed in. 12 hours are a long day of work."""

    session_key: str = setting("", Text(optional=True), secret=True)
    """What the cookies of sessions are signed with, together with the password: any long random
    text. Empty, the default, makes one up at each start, which ends all sessions; several consoles
    behind one name need the same."""

    look_interval_ms: int = setting(2_000, Duration(500, 60_000))
    """How often the console looks at the brokers. In milliseconds; every 2 seconds show a change
    while one still waits for it, and cost brokers little."""

    schema_registry_url: str = setting("", _URL, variables=("KAFSCALE_SCHEMA_REGISTRY_URL",))
    """The schema registry to ask how records are to be read, by Confluent's REST interface. Empty,
    the default, asks none."""
