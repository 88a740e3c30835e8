"""Proxies the addresses of Services to ready endpoints, round robin.

Without endpoints it does not listen. An existing connection stays, even if its endpoint becomes
unready.
"""

import asyncio
import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from services.kubernetes.kubelet.dns_zone import SERVICE_NAME, ready
from services.kubernetes.kubelet.tasks import cancel
from services.kubernetes.namespaces import GATEWAY

Manifest = Mapping[str, Any]
Address = tuple[str, int]
Routes = Mapping[Address, tuple[Address, ...]]

CHUNK_BYTES = 256 << 10


def routes(services: Iterable[Manifest], slices: Iterable[Manifest]) -> Routes:
    """The endpoints of each port of each Service that has any."""
    result: dict[Address, tuple[Address, ...]] = {}
    by_service: dict[tuple[str, str], list[Manifest]] = {}
    for each in slices:
        metadata = each["metadata"]
        service_name = metadata.get("labels", {}).get(SERVICE_NAME, "")
        by_service.setdefault((metadata["namespace"], service_name), []).append(each)
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        own = by_service.get((metadata["namespace"], metadata["name"]), [])
        if spec.get("clusterIP", "None") != "None":
            for port in spec.get("ports", ()):
                if endpoints := tuple(sorted(_ready_endpoints(own, port.get("name", "")))):
                    result[spec["clusterIP"], port["port"]] = endpoints
                    if "nodePort" in port:
                        result[GATEWAY, port["nodePort"]] = endpoints
    return result


def _ready_endpoints(slices: Iterable[Manifest], port_name: str) -> Iterator[Address]:
    for each in slices:
        for port in each.get("ports") or ():
            if (port.get("name") or "") == port_name and port.get("protocol") != "UDP":
                for endpoint in ready(each):
                    yield endpoint["addresses"][0], port["port"]


class ServiceProxy:
    """Listens on the addresses of Services that have endpoints."""

    def __init__(self) -> None:
        self._routes: Routes = {}
        self._servers: dict[Address, asyncio.Server] = {}
        self._connections: set[asyncio.Task[None]] = set()
        self._next_endpoint = itertools.count()

    async def update(self, new_routes: Routes) -> None:
        self._routes = new_routes
        for address in self._servers.keys() - new_routes.keys():
            self._servers.pop(address).close()
        for address in new_routes.keys() - self._servers.keys():
            self._servers[address] = await self._listen(address)

    async def close(self) -> None:
        await self.update({})
        await cancel(*self._connections)

    async def _listen(self, address: Address) -> asyncio.Server:
        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._relay(address, reader, writer))
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)

        return await asyncio.start_server(connected, *address, limit=CHUNK_BYTES)

    async def _relay(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        endpoints = self._routes.get(address, ())
        try:
            if endpoints:
                host, port = endpoints[next(self._next_endpoint) % len(endpoints)]
                connection = await asyncio.open_connection(host, port, limit=CHUNK_BYTES)
                far_reader, far_writer = connection
                try:
                    await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
                finally:
                    far_writer.transport.abort()
        except OSError:
            return  # Either end may close at any time.
        finally:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
