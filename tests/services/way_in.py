"""How a client comes in at a broker that does not take everybody: where, as whom, shown by what.

    way = WayIn(port, "SASL_SSL", mechanism="PLAIN", user="alice", password="…", authority=path)
    Producer(way.librdkafka())

Every client has names of its own for the same settings; they are all here.
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
"""For how long librdkafka is told that its tokens last, where nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class WayIn:
    """Everything that a client has to know."""

    port: int
    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: Callable[[], str] | None = None
    """Brings a new token (OAUTHBEARER)."""
    token_s: float = TOKEN_S
    authority: Path | None = None
    truststore: Path | None = None
    credential: Credential | None = None
    """A certificate to show."""
    client_id: str = ""
    """The name that a client gives itself; only librdkafka is told."""

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def but(self, **changes: Any) -> Self:
        """The same way, changed."""
        return replace(self, **changes)

    def librdkafka(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap.servers": self.address,
            "client.id": self.client_id,
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.username": self.user,
            "sasl.password": self.password,
            "ssl.ca.location": self.authority,
            # Errors that real applications would have librdkafka log go to callbacks and answers.
            "log_level": 0,
        }
        if not self.password:
            del found["sasl.username"]
        if self.token is not None:
            found["oauth_cb"] = self._librdkafka_token
        if self.credential is not None:
            found["ssl.certificate.location"] = self.credential.certificate
            found["ssl.key.location"] = self.credential.key
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in found.items()
            if value != "" and value is not None
        }

    def aiokafka(self) -> dict[str, Any]:
        """Call it where an event loop runs."""
        found = self._python()
        if self.token is not None:
            found["sasl_oauth_token_provider"] = _Tokens(self.token)
        return found

    def kafka_python(self) -> dict[str, Any]:
        found = self._python()
        if self.token is not None:
            found["sasl_oauth_token_provider"] = _BlockingTokens(self.token)
        return found

    def java(self, directory: Path) -> Path:
        """A file of properties, as Java clients and tools read it."""
        found = {
            "bootstrap.servers": self.address,
            "security.protocol": self.protocol,
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": self._jaas(),
        }
        if self.truststore is not None:
            found |= {
                "ssl.truststore.location": str(self.truststore),
                "ssl.truststore.type": "PKCS12",
                "ssl.truststore.password": PASSWORD,
            }
        if self.credential is not None:
            found |= {
                "ssl.keystore.location": str(self.credential.keystore),
                "ssl.keystore.type": "PKCS12",
                "ssl.keystore.password": PASSWORD,
            }
        if self.token is not None:
            token = directory / f"token-{time.monotonic_ns()}"
            token.write_text(self.token())
            found["sasl.oauthbearer.jwt.retriever.class"] = (
                "org.apache.kafka.common.security.oauthbearer.FileJwtRetriever"
            )
            found["sasl.oauthbearer.token.endpoint.url"] = token.as_uri()
            found["sasl.login.callback.handler.class"] = (
                "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
            )
        path = directory / f"client-{time.monotonic_ns()}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in found.items() if value))
        return path

    def tls(self) -> ssl.SSLContext:
        """What Python needs for TLS."""
        context = ssl.create_default_context(cafile=self.authority)
        if self.credential is not None:
            context.load_cert_chain(self.credential.certificate, self.credential.key)
        return context

    def _python(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "bootstrap_servers": self.address,
            "security_protocol": self.protocol,
        }
        if self.protocol.endswith("SSL"):
            found["ssl_context"] = self.tls()
        if self.mechanism:
            found["sasl_mechanism"] = self.mechanism
        if self.password:
            found["sasl_plain_username"] = self.user
            found["sasl_plain_password"] = self.password
        return found

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
