"""The ways in to a broker: every listener with its sockets, its certificate and its logins.

The laws: what cannot work (a certificate that is not there, a listener that nobody could log in at)
stops the start and says what to set; sockets are bound before the cluster hears of them, and serve
nobody before the broker is ready.
"""

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from kafscale.broker.network.listener_config import Listener, Protocol, listeners
from kafscale.broker.network.server import Server
from kafscale.broker.network.server import Settings as ServerSettings
from kafscale.broker.network.sockets import Address, address_of
from kafscale.config import Config
from kafscale.config.sections.security import all_for_listener
from kafscale.errors import ConfigError
from kafscale.observability.logging import get_logger
from kafscale.security.tls.context import ListenerTls

log = get_logger(__name__)


@dataclass(frozen=True)
class Entry:
    """One listener that is bound."""

    listener: Listener
    sockets: tuple[socket.socket, ...]
    tls: ListenerTls | None

    @property
    def address(self) -> Address:
        return address_of(self.sockets[0])


@asynccontextmanager
async def open_entries(config: Config, settings: ServerSettings) -> AsyncIterator[list[Entry]]:
    """All listeners, bound inside the block."""
    with ExitStack() as stack:
        entries = []
        for listener in listeners(config):
            _check(config, listener)
            tls = ListenerTls(config.tls, listener.name) if listener.is_encrypted else None
            sockets = await settings.open_listeners(listener.host, listener.port)
            for bound in sockets:
                stack.callback(bound.close)
            entries.append(Entry(listener, tuple(sockets), tls))
        yield entries


def serve(server: Server, entries: list[Entry]) -> None:
    """Let clients in."""
    for entry in entries:
        server.serve(entry.sockets, entry.listener, entry.tls)


def announcement(entry: Entry, address: Address) -> str:
    """What people are told of a listener that serves."""
    host, port = address
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    if entry.listener.protocol is Protocol.PLAINTEXT:
        return f"broker listening on {place}"
    return f"broker listening on {place} ({entry.listener.protocol})"


def _check(config: Config, listener: Listener) -> None:
    if not listener.authenticates:
        return
    offered = all_for_listener(config.sasl.enabled_mechanisms, listener.name)
    if not offered:
        raise ConfigError(
            f"listener {listener.name} has clients log in ({listener.protocol}), but"
            " sasl.enabledMechanisms offers no way to; set it, for instance to SCRAM-SHA-512"
        )
    if not listener.is_encrypted and {"PLAIN", "OAUTHBEARER"} & set(offered):
        log.warning(
            "passwords or tokens travel in the clear",
            listener=listener.name,
            protocol=str(listener.protocol),
            mechanisms=list(offered),
        )
