"""The configured listeners of a broker: names, security protocols and addresses.

Invariants: there is at least one listener, and every name has one protocol. Clients are given the
advertised addresses of the listener that they connected to. This module is pure; `sockets` binds.
"""

import enum

import msgspec

from kafscale.config import Config
from kafscale.config.sections.security import PROTOCOLS
from kafscale.errors import ConfigError
from kafscale.net.address import ANY_ADDRESS


class SecurityProtocol(enum.StrEnum):
    """Whether a listener encrypts and authenticates, in Kafka's terms."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class Listener(msgspec.Struct, frozen=True):
    """One listener: where clients connect, and by which protocol."""

    name: str = "PLAINTEXT"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    host: str = ANY_ADDRESS
    port: int = 9092
    advertised_host: str = ""
    """The host name for clients; empty means the local address that they connected to."""
    advertised_port: int | None = None

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in {SecurityProtocol.SSL, SecurityProtocol.SASL_SSL}

    @property
    def authenticates(self) -> bool:
        """Whether clients have to authenticate by SASL."""
        return self.protocol in {SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL}


def configured_listeners(config: Config) -> list[Listener]:
    """The listeners of the settings; the broker registers under the first one."""
    settings = config.broker
    if not settings.listeners:
        return [
            Listener(
                name=settings.security_protocol,
                protocol=SecurityProtocol(settings.security_protocol),
                host=config.bind_address(settings.host),
                port=settings.port,
                advertised_host=settings.advertised_host,
                advertised_port=settings.advertised_port,
            )
        ]
    protocols = dict(entry.rsplit(":", 1) for entry in settings.listener_security_protocol_map)
    advertised = {
        name: (host, port) for name, host, port in map(_parts, settings.advertised_listeners)
    }
    listeners: dict[str, Listener] = {}
    for name, host, port in map(_parts, settings.listeners):
        if name in listeners:
            raise ConfigError(f"broker.listeners names {name} twice")
        protocol = protocols.get(name) or (name if name in PROTOCOLS else "")
        if not protocol:
            raise ConfigError(
                f"broker.listeners: no security protocol is configured for {name}; add"
                f" {name}:SASL_SSL, or another protocol, to broker.listenerSecurityProtocolMap"
            )
        advertised_host, advertised_port = advertised.get(name, ("", None))
        listeners[name] = Listener(
            name,
            SecurityProtocol(protocol),
            host or ANY_ADDRESS,
            port,
            advertised_host,
            advertised_port,
        )
    if unknown := sorted(advertised.keys() - listeners.keys()):
        raise ConfigError(
            f"broker.advertisedListeners has {unknown[0]}, which broker.listeners does not define"
        )
    return list(listeners.values())


def _parts(text: str) -> tuple[str, str, int]:
    name, _, address = text.partition("://")
    host, _, port = address.rpartition(":")
    return name, host.strip("[]"), int(port)
