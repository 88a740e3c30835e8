"""The connection and security settings of a Kafka client, for every client library.

    config = ClientConfig(port=port, protocol="SASL_SSL", mechanism="PLAIN", user="alice", ...)
    Producer(config.librdkafka())

Each library has its own names for the same settings; this module knows them all.
"""

import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from aiokafka.abc import AbstractTokenProvider
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

from kafscale.security.tls.dev_ca import PASSWORD, Credential

HOST = "127.0.0.1"
TOKEN_S = 600
"""The default token lifetime that is reported to librdkafka."""


@dataclass(frozen=True, kw_only=True)
class ClientConfig:
    """Address, security protocol and credentials."""

    port: int
    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: Callable[[], str] | None = None
    """Returns a new token (OAUTHBEARER)."""
    token_s: float = TOKEN_S
    authority: Path | None = None
    truststore: Path | None = None
    credential: Credential | None = None
    """The client certificate."""
    client_id: str = ""
    """`client.id`; used with librdkafka only."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def with_changes(self, **changes: Any) -> Self:
        """A copy with changed fields."""
        return replace(self, **changes)

    def librdkafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap.servers": self.address,
            "client.id": self.client_id,
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.authority,
            # Errors reach callbacks and results; librdkafka need not log them too.
            "log_level": 0,
        }
        if not self.password:
            del settings["sasl.username"]
        if self.token is not None:
            settings["oauth_cb"] = self._librdkafka_token
        if self.credential is not None:
            settings["ssl.certificate.location"] = self.credential.certificate
            settings["ssl.key.location"] = self.credential.key
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in settings.items()
            if value != "" and value is not None
        }

    def aiokafka(self) -> dict[str, Any]:
        """Must be called with a running event loop."""
        settings = self._python()
        if self.token is not None:
            settings["sasl_oauth_token_provider"] = _Tokens(self.token)
        return settings

    def kafka_python(self) -> dict[str, Any]:
        settings = self._python()
        if self.token is not None:
            settings["sasl_oauth_token_provider"] = _BlockingTokens(self.token)
        return settings

    def java(self, directory: Path) -> Path:
        """Write a properties file for Java clients and tools."""
        settings = {
            "bootstrap.servers": self.address,
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": self._jaas(),
        }
        if self.truststore is not None:
            settings |= {
                "ssl.truststore.location": str(self.truststore),
                "ssl.truststore.type": "PKCS12",
                "ssl.truststore.password": PASSWORD,
            }
        if self.credential is not None:
            settings |= {
                "ssl.keystore.location": str(self.credential.keystore),
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": PASSWORD,
            }
        if self.token is not None:
            token = directory / f"token-{time.monotonic_ns()}"
            token.write_text(self.token())
            settings["sasl.oauthbearer.jwt.retriever.class"] = (
                "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever"
            )
            settings["sasl.oauthbearer.token.endpoint.url"] = token.as_uri()
            settings["sasl.login.callback.handler.class"] = (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            )
        path = directory / f"client-{time.monotonic_ns()}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items() if value))
        return path

    def tls(self) -> ssl.SSLContext:
        """The TLS context for Python clients."""
        context = ssl.create_default_context(cafile=self.authority)
        if self.credential is not None:
            context.load_cert_chain(self.credential.certificate, self.credential.key)
        return context

    def _python(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            "bootstrap_servers": self.address,
            "security_protocol": self.protocol,
        }
        if self.protocol.endswith("SSL"):
            settings["ssl_context"] = self.tls()
        if self.mechanism:
            settings["sasl_mechanism"] = self.mechanism
        if self.password:
            settings["sasl_plain_username"] = self.user
            settings["sasl_plain_password"] = self.password
        return settings

    def _librdkafka_token(self, _config: str) -> tuple[str, float]:
        assert self.token is not None
        return self.token(), time.time() + self.token_s

    def _jaas(self) -> str:
        if not self.mechanism:
            return ""
        security = "org.apache.kafka.common.security"
        if self.mechanism == "OAUTHBEARER":
            return f"{security}.oauthbearer.OAuthBearerLoginModule required;"
        module = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        return (
            f"{security}.{module}LoginModule required"
            f' username="{self.user}" password="{self.password}";'
        )


class _Tokens(AbstractTokenProvider):
    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token()


class _BlockingTokens(KafkaPythonTokenProvider):
    def __init__(self, token: Callable[[], str]) -> None:
        super().__init__()
        self._token = token

    def token(self) -> str:
        return self._token()
