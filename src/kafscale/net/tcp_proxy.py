"""Joins two connections, so that the ends of both talk to each other.

The laws: bytes are passed on as they come, and read no faster than the other end takes them; so
what is in between is bounded by the buffers of the streams. When one end closes, what it has sent
is still delivered, and then both connections are over.
"""

import asyncio
from typing import Final

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES: Final = 64 * 1024


async def splice(one: Streams, other: Streams) -> None:
    """Pass bytes on, both ways, until one end closes; both connections are closed then."""
    (reader, writer), (other_reader, other_writer) = one, other
    pumps = [
        asyncio.ensure_future(_pump(reader, other_writer)),
        asyncio.ensure_future(_pump(other_reader, writer)),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Before anything is waited for: this may be cancelled a second time.
        writer.close()
        other_writer.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
