"""The process behind `network`: holds links, and is told what to do with them over its input.

Every line that comes is an order, and every line that goes is the answer to one. It ends when there
is no more input.
"""

import asyncio
import random
import sys
from typing import Literal

import msgspec

from services.http_link import HttpLink
from services.link import Link
from services.link_fault import Carried, Fault


class Order(msgspec.Struct, tag=True):
    name: str


class Open(Order):
    """A new link to a server."""

    upstream_port: int
    kind: Literal["tcp", "http"]


class Misbehave(Order):
    fault: Fault


class BreakOff(Order):
    """Reset the connections that there are."""


class Tell(Order):
    """What has been carried."""


class Answer(msgspec.Struct):
    port: int
    carried: Carried


_decoder = msgspec.json.Decoder(Open | Misbehave | BreakOff | Tell)


async def run(seed: int) -> None:
    chance = random.Random(seed)
    links: dict[str, Link] = {}
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        order = _decoder.decode(line)
        match order:
            case Open():
                kind = HttpLink if order.kind == "http" else Link
                links[order.name] = kind(order.upstream_port, chance)
                await links[order.name].listen()
            case Misbehave():
                await links[order.name].set(order.fault)
            case BreakOff():
                links[order.name].break_off()
            case Tell():
                pass
        link = links[order.name]
        answer = msgspec.json.encode(Answer(link.port, link.carried))
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()
    for link in links.values():
        await link.close()


if __name__ == "__main__":
    asyncio.run(run(int(sys.argv[1])))
