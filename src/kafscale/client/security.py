"""Security settings of a client: TLS, SASL mechanism and credentials.

    client = Client(addresses, Security.from_settings(config.client))

`Security` is a picklable value: the driver creates it, and tasks use it. It holds the paths of
files, which are read when a connection is opened. Its `repr` contains no secrets, and invalid
combinations are rejected when it is created.
"""

import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from kafscale.config.sections.client import Client as ClientSettings
from kafscale.config.sections.security import ClientTls
from kafscale.errors import ConfigError

OAUTH: Final = "OAUTHBEARER"


@dataclass(frozen=True, kw_only=True)
class Security:
    """The security settings for the brokers of a cluster."""

    protocol: str = "PLAINTEXT"
    mechanism: str = "SCRAM-SHA-512"
    username: str = ""
    password: str = field(default="", repr=False)
    token_file: str = ""
    tls: ClientTls = field(default_factory=ClientTls)

    def __post_init__(self) -> None:
        if not self.authenticates:
            return
        if self.mechanism == OAUTH and not self.token_file:
            raise ConfigError(
                f"{OAUTH} needs a token: set client.tokenFile (KAFSCALE_CLIENT_TOKEN_FILE)"
            )
        if self.mechanism != OAUTH and not (self.username and self.password):
            raise ConfigError(
                f"{self.protocol} with {self.mechanism} needs a user name and a password: set"
                " client.username and client.password (KAFSCALE_CLIENT_USERNAME,"
                " KAFSCALE_CLIENT_PASSWORD)"
            )

    @classmethod
    def from_settings(cls, settings: ClientSettings) -> Self:
        """Convert settings; paths become absolute, because tasks run in other directories."""
        tls = settings.tls
        return cls(
            protocol=settings.security_protocol,
            mechanism=settings.sasl_mechanism,
            username=settings.username,
            password=settings.password,
            token_file=_absolute(settings.token_file),
            tls=replace(
                tls,
                ca_file=_absolute(tls.ca_file),
                cert_file=_absolute(tls.cert_file),
                key_file=_absolute(tls.key_file),
            ),
        )

    @property
    def encrypts(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def authenticates(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def user_description(self) -> str:
        """The user or token, for error messages."""
        is_token = self.mechanism == OAUTH
        return f"the token in {self.token_file}" if is_token else f"user {self.username}"

    def context(self) -> ssl.SSLContext | None:
        """The TLS context; None without TLS."""
        if not self.encrypts:
            return None
        # Slow to import.
        from kafscale.security.tls.context import client_context  # noqa: PLC0415

        return client_context(self.tls)

    def token(self) -> str:
        """Read the token; another process may renew the file."""
        if self.mechanism != OAUTH:
            return ""
        try:
            return Path(self.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read client.tokenFile: {error}") from None


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""


PLAINTEXT: Final = Security()
"""Without TLS and SASL, the default of brokers."""
