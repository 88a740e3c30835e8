"""`Mechanisms`: the ways to show who one is that this broker offers.

    mechanisms = Mechanisms(config.sasl, access.credential, clock=clock, random=SystemRandom())
    await mechanisms.start()
    mechanisms.offered("EXTERNAL")      # ("SCRAM-SHA-512", "OAUTHBEARER")
    exchange = mechanisms.exchange("SCRAM-SHA-512")

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
from kafscale.security.sasl.authenticator import Exchange
from kafscale.security.sasl.oauthbearer import OAuthExchange
from kafscale.security.sasl.plain import PlainExchange
from kafscale.security.sasl.scram_authenticator import Credentials, ScramExchange
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
        self._makers: dict[str, Callable[[], Exchange]] = {}

    async def start(self) -> None:
        """Get what the mechanisms go by; raises `ConfigError` where one has nothing."""
        enabled = {entry.rpartition("=")[2] for entry in self._settings.enabled_mechanisms}
        for kind in ScramMechanism:
            if kind.label in enabled:
                self._makers[kind.label] = self._scram(kind)
        if "PLAIN" in enabled:
            self._makers["PLAIN"] = self._plain()
        if "OAUTHBEARER" in enabled:
            await self._jwks.start()
            verifier = TokenVerifier(self._settings, self._jwks.find, self._clock)
            self._makers["OAUTHBEARER"] = lambda: OAuthExchange(verifier.identity)

    async def close(self) -> None:
        await self._jwks.close()

    def offered(self, listener: str) -> tuple[str, ...]:
        """What may be used on a listener, in the order of the setting."""
        return all_for_listener(self._settings.enabled_mechanisms, listener)

    def exchange(self, mechanism: str) -> Exchange:
        """A new attempt."""
        maker = self._makers.get(mechanism)
        if maker is None:
            raise UnsupportedMechanismError(f"{mechanism} is not offered here")
        return maker()

    def _scram(self, mechanism: ScramMechanism) -> Callable[[], Exchange]:
        return lambda: ScramExchange(
            mechanism, self._credentials, nonce=scram.new_nonce(self._random), secret=self._secret
        )

    def _plain(self) -> Callable[[], Exchange]:
        users = PlainUsers(
            self._settings.plain_users,
            self._settings.plain_users_file,
            secret=self._secret,
            clock=self._clock,
        )
        return lambda: PlainExchange(users.is_right)
