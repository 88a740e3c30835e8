"""`Mechanisms`: the ways to show who one is that this broker offers.

    mechanisms = Mechanisms(config.sasl, access.credential, clock=clock, random=SystemRandom())
    await mechanisms.start()
    mechanisms.offered("EXTERNAL")      # ("SCRAM-SHA-512", "OAUTHBEARER")
    exchange = mechanisms.create_server("SCRAM-SHA-512")

The law: what is offered works; a mechanism that has nothing to go by is no start. What happens in
an exchange is left to each of them, who may try and how often to those who hold the connection.
"""

from collections.abc import Callable
from random import Random
from typing import Final

from kafscale.config.sections.security import Sasl, all_for_listener
from kafscale.errors import UnsupportedMechanismError
from kafscale.metadata.access.model import ScramMechanism
from kafscale.security.jwt.jwks import Jwks
from kafscale.security.jwt.verifier import TokenVerifier
from kafscale.security.sasl import scram
from kafscale.security.sasl.authenticator import SaslServer
from kafscale.security.sasl.oauthbearer import OAuthBearerSaslServer
from kafscale.security.sasl.plain import PlainSaslServer
from kafscale.security.sasl.scram_authenticator import Credentials, ScramSaslServer
from kafscale.security.users_file import PlainUsers

_SECRET_BYTES: Final = 32


class Mechanisms:
    """All that are enabled on any listener."""

    def __init__(
        self, settings: Sasl, credentials: Credentials, *, clock: Callable[[], int], random: Random
    ) -> None:
        """`clock` gives ms since 1970; `random` makes nonces, which nobody must foresee."""
        self._settings = settings
        self._clock = clock
        self._random = random
        self._credentials = credentials
        self._secret = random.randbytes(_SECRET_BYTES)
        self._jwks = Jwks(settings, clock)
        self._factories: dict[str, Callable[[], SaslServer]] = {}

    async def start(self) -> None:
        """Get what the mechanisms go by; raises `ConfigError` where one has nothing."""
        enabled = {entry.rpartition("=")[2] for entry in self._settings.enabled_mechanisms}
        for kind in ScramMechanism:
            if kind.label in enabled:
                self._factories[kind.label] = self._scram(kind)
        if "PLAIN" in enabled:
            self._factories["PLAIN"] = self._plain()
        if "OAUTHBEARER" in enabled:
            await self._jwks.start()
            verifier = TokenVerifier(self._settings, self._jwks.find, self._clock)
            self._factories["OAUTHBEARER"] = lambda: OAuthBearerSaslServer(verifier.verify)

    async def close(self) -> None:
        await self._jwks.close()

    def offered(self, listener: str) -> tuple[str, ...]:
        """What may be used on a listener, in the order of the setting."""
        return all_for_listener(self._settings.enabled_mechanisms, listener)

    def create_server(self, mechanism: str) -> SaslServer:
        """A new attempt."""
        factory = self._factories.get(mechanism)
        if factory is None:
            raise UnsupportedMechanismError(f"{mechanism} is not offered here")
        return factory()

    def _scram(self, mechanism: ScramMechanism) -> Callable[[], SaslServer]:
        return lambda: ScramSaslServer(
            mechanism, self._credentials, nonce=scram.new_nonce(self._random), secret=self._secret
        )

    def _plain(self) -> Callable[[], SaslServer]:
        users = PlainUsers(
            self._settings.plain_users,
            self._settings.plain_users_file,
            secret=self._secret,
            clock=self._clock,
        )
        return lambda: PlainSaslServer(users.verify_password)
