"""Relays bytes between two TCP connections.

Invariants: bytes are read no faster than the other side accepts them, so memory is bounded by the
stream buffers. When one side closes, the bytes it has sent are delivered, and then both connections
are closed.
"""

import asyncio
from typing import Final

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

CHUNK_BYTES: Final = 64 * 1024


async def relay(one: Streams, other: Streams) -> None:
    """Relay bytes in both directions until one side closes, then close both connections."""
    (reader, writer), (other_reader, other_writer) = one, other
    pumps = [
        asyncio.ensure_future(_pump(reader, other_writer)),
        asyncio.ensure_future(_pump(other_reader, writer)),
    ]
    try:
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
    finally:
        # Before any await, because this may be cancelled a second time.
        writer.close()
        other_writer.close()
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
