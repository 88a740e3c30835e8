"""The process behind `network`: holds the links, and executes commands from its standard input.

Every input line is a command, and every output line the response to one. It exits at the end of
its input.
"""

import asyncio
import random
import sys
from typing import Literal

import msgspec

from services.http_link import HttpLink
from services.link import Link
from services.link_fault import Fault, LinkCounts


class Command(msgspec.Struct, tag=True):
    name: str


class Open(Command):
    """Open a new link to a server."""

    upstream_port: int
    kind: Literal["tcp", "http"]


class SetFault(Command):
    fault: Fault


class ResetConnections(Command):
    """Reset the open connections."""


class GetCounts(Command):
    """Return the counters."""


class Response(msgspec.Struct):
    port: int
    counts: LinkCounts


_decoder = msgspec.json.Decoder(Open | SetFault | ResetConnections | GetCounts)


async def run(seed: int) -> None:
    chance = random.Random(seed)
    links: dict[str, Link] = {}
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = _decoder.decode(line)
        match command:
            case Open():
                kind = HttpLink if command.kind == "http" else Link
                links[command.name] = kind(command.upstream_port, chance)
                await links[command.name].listen()
            case SetFault():
                await links[command.name].set(command.fault)
            case ResetConnections():
                links[command.name].reset_connections()
            case GetCounts():
                pass
        link = links[command.name]
        response = msgspec.json.encode(Response(link.port, link.counts))
        sys.stdout.buffer.write(response + b"\n")
        sys.stdout.buffer.flush()
    for link in links.values():
        await link.close()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1])))
