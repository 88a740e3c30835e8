"""`Mechanisms`: the SASL mechanisms that a broker offers.

    mechanisms = Mechanisms(config.sasl, acls.credential, clock=clock, random=SystemRandom())
    await mechanisms.start()
    mechanisms.offered("EXTERNAL")      # ("SCRAM-SHA-512", "OAUTHBEARER")
    server = mechanisms.create_server("SCRAM-SHA-512")

The broker does not start if an enabled mechanism has no users or keys.
"""

from collections.abc import Callable
from random import Random
from typing import Final

from kafscale.config.sections.security import Sasl, all_for_listener
from kafscale.errors import UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.observability.logging import get_logger
from kafscale.security.jwt.jwks import Jwks
from kafscale.security.jwt.verifier import TokenVerifier
from kafscale.security.sasl import scram
from kafscale.security.sasl.authenticator import SaslServer
from kafscale.security.sasl.oauthbearer import OAuthBearerSaslServer
from kafscale.security.sasl.plain import PlainSaslServer, PlainUsers
from kafscale.security.sasl.scram_authenticator import Credentials, Decoys, ScramSaslServer

logger = get_logger(__name__)

SECRET_BYTES: Final = 32


class Mechanisms:
    """All mechanisms that are enabled on any listener."""

    def __init__(
        self,
        settings: Sasl,
        credentials: Credentials,
        decoys: Decoys | None = None,
        *,
        clock: Callable[[], int],
        random: Random,
    ) -> None:
        """`clock` returns ms since 1970; `random` must be cryptographically secure."""
        self._settings = settings
        self._clock = clock
        self._random = random
        self._credentials = credentials
        self._secret = random.randbytes(SECRET_BYTES)
        self._decoys = decoys or Decoys(self._secret)
        self._jwks = Jwks(settings, clock)
        self._factories: dict[str, Callable[[], SaslServer]] = {}

    async def start(self) -> None:
        """Load users and keys; raises `ConfigError` if a mechanism has none."""
        enabled = {entry.rpartition("=")[2] for entry in self._settings.enabled_mechanisms}
        for kind in ScramMechanism:
            if kind.label in enabled:
                self._factories[kind.label] = self._scram(kind)
        if "PLAIN" in enabled:
            self._factories["PLAIN"] = self._plain()
        if "OAUTHBEARER" in enabled:
            await self._jwks.start()
            if not (self._settings.oauth_expected_issuer or self._settings.oauth_expected_audience):
                logger.warning(
                    "tokens for other services are accepted",
                    advice="set sasl.oauthExpectedIssuer and sasl.oauthExpectedAudience",
                )
            verifier = TokenVerifier(self._settings, self._jwks.find, self._clock)
            self._factories["OAUTHBEARER"] = lambda: OAuthBearerSaslServer(verifier.verify)

    async def close(self) -> None:
        await self._jwks.close()

    def offered(self, listener: str) -> tuple[str, ...]:
        """The mechanisms of a listener, in the order of the setting."""
        return all_for_listener(self._settings.enabled_mechanisms, listener)

    def create_server(self, mechanism: str) -> SaslServer:
        """Start an authentication attempt."""
        factory = self._factories.get(mechanism)
        if factory is None:
            raise UnsupportedMechanismError(f"SASL mechanism {mechanism} is not enabled")
        return factory()

    def _scram(self, mechanism: ScramMechanism) -> Callable[[], SaslServer]:
        return lambda: ScramSaslServer(
            mechanism, self._credentials, self._decoys, nonce=scram.new_nonce(self._random)
        )

    def _plain(self) -> Callable[[], SaslServer]:
        users = PlainUsers(
            self._settings.plain_users,
            self._settings.plain_users_file,
            secret=self._secret,
            clock=self._clock,
        )
        return lambda: PlainSaslServer(users.verify_password)
