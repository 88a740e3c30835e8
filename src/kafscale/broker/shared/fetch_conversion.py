"""Converts batches to what an older version of Fetch can read.

v0 and v1 read message sets of magic 0, v2 and v3 those of magic 1; before v10, zstd is refused.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from kafscale.errors import UnsupportedCodecError
from kafscale.records import BatchView, Codec, down_convert, split

BATCHES_SINCE: Final = 4
TIMESTAMPS_SINCE: Final = 2
ZSTD_SINCE: Final = 10
DECOMPRESSED_BYTES_MAX: Final = 32 * 1024 * 1024
"""The decompressed size limit of a converted batch; batches of real producers are far smaller."""


_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="kafscale-conversion")


def check_codecs(slices: list[memoryview]) -> None:
    """Raise if a batch has a codec that Fetch before v10 does not know."""
    _check_codecs(_split(slices))


async def convert(
    slices: list[memoryview], version: int, offset: int, bytes_max: int
) -> list[memoryview]:
    """Convert batches to message sets, in a thread: it reads every record."""
    batches = _split(slices)
    _check_codecs(batches)
    down = partial(
        down_convert,
        batches,
        1 if version >= TIMESTAMPS_SINCE else 0,
        first_offset=offset,
        bytes_max=bytes_max,
        decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
    )
    return [memoryview(await asyncio.get_running_loop().run_in_executor(_THREAD, down))]


def _split(slices: list[memoryview]) -> list[BatchView]:
    return split(slices[0] if len(slices) == 1 else b"".join(slices))


def _check_codecs(batches: list[BatchView]) -> None:
    if any(batch.codec is Codec.ZSTD for batch in batches):
        raise UnsupportedCodecError(f"zstd needs Fetch v{ZSTD_SINCE} or later")
