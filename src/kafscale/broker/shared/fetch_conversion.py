"""Converts batches to what an older version of Fetch can read.

v0 and v1 read message sets of magic 0, v2 and v3 those of magic 1; before v10, zstd is refused.
"""

from typing import Final

from kafscale.errors import UnsupportedCodecError
from kafscale.records import Codec, down_convert, split

BATCHES_SINCE: Final = 4
TIMESTAMPS_SINCE: Final = 2
ZSTD_SINCE: Final = 10
DECOMPRESSED_BYTES_MAX: Final = 32 * 1024 * 1024
"""The decompressed size limit of a converted batch; batches of real producers are far smaller."""


def convert(
    slices: list[memoryview], version: int, offset: int, bytes_max: int
) -> list[memoryview]:
    """Convert batches to a format that the version can read."""
    batches = split(slices[0] if len(slices) == 1 else b"".join(slices))
    if any(batch.codec is Codec.ZSTD for batch in batches):
        raise UnsupportedCodecError(f"zstd needs Fetch v{ZSTD_SINCE} or later")
    if version >= BATCHES_SINCE:
        return slices
    magic = 1 if version >= TIMESTAMPS_SINCE else 0
    converted = down_convert(
        batches,
        magic,
        first_offset=offset,
        bytes_max=bytes_max,
        decompressed_bytes_max=DECOMPRESSED_BYTES_MAX,
    )
    return [memoryview(converted)]
