"""The bound listeners of a broker, each with its sockets and its certificate.

Invariants: a listener that cannot work (without a certificate, or without a SASL mechanism) stops
the start with an error that says what to set. Sockets are bound before the broker registers, and
serve no client before the broker is ready.
"""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from kafscale.broker.network.listener_config import Listener, SecurityProtocol, configured_listeners
from kafscale.broker.network.server import Server, ServerSettings
from kafscale.broker.network.sockets import address_of
from kafscale.config import Config
from kafscale.config.sections.security import all_for_listener
from kafscale.errors import ConfigError
from kafscale.net.address import Address
from kafscale.observability.logging import get_logger
from kafscale.security.tls.context import ListenerTls

logger = get_logger(__name__)


@dataclass(frozen=True)
class BoundListener:
    """One listener with its bound sockets."""

    listener: Listener
    sockets: tuple[socket.socket, ...]
    tls: ListenerTls | None

    @property
    def address(self) -> Address:
        return address_of(self.sockets[0])


@asynccontextmanager
async def bind_listeners(
    config: Config, settings: ServerSettings
) -> AsyncIterator[list[BoundListener]]:
    """Bind all configured listeners; their sockets are closed after the block."""
    with ExitStack() as stack:
        bound_listeners = []
        for listener in configured_listeners(config):
            _check(config, listener)
            tls = ListenerTls(config.tls, listener.name) if listener.is_encrypted else None
            sockets = await settings.bind(listener.host, listener.port)
            for bound in sockets:
                stack.callback(bound.close)
            bound_listeners.append(BoundListener(listener, tuple(sockets), tls))
        yield bound_listeners


def serve(server: Server, bound_listeners: list[BoundListener]) -> None:
    """Start accepting clients."""
    for bound in bound_listeners:
        server.serve(bound.sockets, bound.listener, bound.tls)


def announcements(config: Config, bound_listeners: list[BoundListener]) -> Iterator[str]:
    """The lines that the broker prints when it serves clients."""
    for bound in bound_listeners:
        for sock in bound.sockets:
            yield describe(bound, address_of(sock))
    if not config.broker.host and not config.broker.listeners and not config.etcd.endpoints:
        yield (
            "only programs on this machine can connect: set KAFSCALE_BROKER_ADDR="
            f":{config.broker.port} to open the broker to the network"
        )


def describe(bound: BoundListener, address: Address) -> str:
    """The line for one address of a listener."""
    if bound.listener.protocol is SecurityProtocol.PLAINTEXT:
        return f"broker listening on {address}"
    return f"broker listening on {address} ({bound.listener.protocol})"


def _check(config: Config, listener: Listener) -> None:
    if not listener.authenticates:
        return
    mechanisms = all_for_listener(config.sasl.enabled_mechanisms, listener.name)
    if not mechanisms:
        raise ConfigError(
            f"listener {listener.name} uses {listener.protocol}, but sasl.enabledMechanisms has no"
            " mechanism for it; set one, for example SCRAM-SHA-512"
        )
    if not listener.is_encrypted and {"PLAIN", "OAUTHBEARER"} & set(mechanisms):
        logger.warning(
            "passwords or tokens are sent unencrypted",
            listener=listener.name,
            protocol=str(listener.protocol),
            mechanisms=list(mechanisms),
        )
