"""Asking a broker for its metrics: one GET over HTTP/1.1.

The law: a broker can cost us neither much time nor much memory.
"""

import asyncio
from typing import Final

from kafscale.errors import KafscaleError
from kafscale.net.host_port import Address

ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
_HEAD_BYTES_MAX: Final = 64 * 1024
_LENGTH: Final = b"content-length:"


class ScrapeError(KafscaleError):
    """There are no metrics to be had."""


async def scrape(address: Address, seconds_max: float) -> str:
    """What a broker tells at /metrics."""
    try:
        async with asyncio.timeout(seconds_max):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, limit=_HEAD_BYTES_MAX
            )
            try:
                return await _get(reader, writer, address)
            finally:
                writer.transport.abort()
    except TimeoutError:
        raise ScrapeError(f"{address} tells no metrics within {seconds_max:g} s") from None
    except (OSError, EOFError, asyncio.LimitOverrunError) as error:
        raise ScrapeError(f"{address} tells no metrics: {error}") from None


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address) -> str:
    writer.write(f"GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    status, *headers = head.split(b"\r\n")
    if status.split(b" ")[1:2] != [b"200"]:
        raise ScrapeError(f"{address} tells no metrics: {status.decode(errors='replace')[:100]}")
    lengths = [each.partition(b":")[2] for each in headers if each.lower().startswith(_LENGTH)]
    size_bytes = int(lengths[0]) if lengths and lengths[0].strip().isdigit() else -1
    if not 0 <= size_bytes <= ANSWER_BYTES_MAX:
        raise ScrapeError(f"{address} tells metrics of no size that we take")
    return (await reader.readexactly(size_bytes)).decode(errors="replace")
