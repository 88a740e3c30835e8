"""How a client is safe: whether it encrypts, how it shows who it is, and whom it trusts.

    client = Client(addresses, Security.of(config.client))

A value: it is made where settings are read, and travels to tasks; files are named in it, and read
where a connection is made. The laws: no secret is part of its `repr`, and one that cannot work
cannot be made.
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
    """What is to be known to talk to the brokers of a cluster."""

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
                f"{self.protocol} with {self.mechanism} needs a user and a password: set"
                " client.username and client.password (KAFSCALE_CLIENT_USERNAME,"
                " KAFSCALE_CLIENT_PASSWORD)"
            )

    @classmethod
    def of(cls, settings: ClientSettings) -> Self:
        """What the settings say; files by their whole paths, as tasks run in other directories."""
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
    def who(self) -> str:
        """Who logs in, for people to read."""
        return f"the token in {self.token_file}" if self.mechanism == OAUTH else self.username

    def context(self) -> ssl.SSLContext | None:
        """What TLS is spoken with; None where it is not."""
        if not self.encrypts:
            return None
        from kafscale.security.tls.context import client_context  # noqa: PLC0415 - slow to load, rarely needed.

        return client_context(self.tls)

    def token(self) -> str:
        """The token as it is now, since whoever writes the file renews it."""
        if self.mechanism != OAUTH:
            return ""
        try:
            return Path(self.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"client.tokenFile cannot be read: {error}") from None


def _absolute(file: str) -> str:
    return str(Path(file).absolute()) if file else ""


PLAINTEXT: Final = Security()
"""Neither encrypted nor authenticated, as brokers serve by default."""
