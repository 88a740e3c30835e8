"""The listeners of a broker, as its settings describe them: names, protocols and addresses.

The law: there is at least one; every name has one protocol, and clients are told of brokers by the
addresses that belong to the listener at which they have come. Pure; sockets are opened elsewhere.
"""

import enum
from typing import Final

import msgspec

from kafscale.config import Config
from kafscale.config.sections.security import PROTOCOLS
from kafscale.errors import ConfigError

EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104 - what an empty host stands for.


class Protocol(enum.StrEnum):
    """How clients are served."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Listener(msgspec.Struct, frozen=True):
    """Where clients are served, and how."""

    name: str = "PLAINTEXT"
    protocol: Protocol = Protocol.PLAINTEXT
    host: str = EVERY_ADDRESS
    port: int = 9092
    advertised_host: str = ""
    """The name under which clients reach it; empty stands for the address at which they come."""
    advertised_port: int | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in {Protocol.SSL, Protocol.SASL_SSL}

    @property
    def authenticates(self) -> bool:
        """Whether clients have to log in (SASL)."""
        return self.protocol in {Protocol.SASL_PLAINTEXT, Protocol.SASL_SSL}


def listeners(config: Config) -> list[Listener]:
    """Those that the settings ask for, the first of which is what others know the broker by."""
    settings = config.broker
    if not settings.listeners:
        return [
            Listener(
                name=settings.security_protocol,
                protocol=Protocol(settings.security_protocol),
                host=settings.host,
                port=settings.port,
                advertised_host=settings.advertised_host,
                advertised_port=settings.advertised_port,
            )
        ]
    protocols = dict(entry.rsplit(":", 1) for entry in settings.listener_security_protocol_map)
    advertised = {
        name: (host, port) for name, host, port in map(_parts, settings.advertised_listeners)
    }
    found: dict[str, Listener] = {}
    for name, host, port in map(_parts, settings.listeners):
        if name in found:
            raise ConfigError(f"broker.listeners names {name} twice")
        protocol = protocols.get(name) or (name if name in PROTOCOLS else "")
        if not protocol:
            raise ConfigError(
                f"broker.listeners has {name}, but nothing says how it is served; add"
                f" {name}:SASL_SSL, or another protocol, to broker.listenerSecurityProtocolMap"
            )
        advertised_host, advertised_port = advertised.get(name, ("", None))
        found[name] = Listener(
            name, Protocol(protocol), host or EVERY_ADDRESS, port, advertised_host, advertised_port
        )
    if unknown := sorted(advertised.keys() - found.keys()):
        raise ConfigError(f"broker.advertisedListeners has {unknown[0]}, which is no listener")
    return list(found.values())


def _parts(text: str) -> tuple[str, str, int]:
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return name, host.strip("[]"), int(port)
