"""XXH32 of short inputs, and LZ4 header checksums of magic 0 clients."""

import cramjam
import pytest

from kafscale.errors import CorruptBatchError
from kafscale.records.legacy.lz4_frame import fix_header_checksum, xxh32_short


@pytest.mark.parametrize(
    ("data", "checksum"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF)]
)
def test_xxh32_has_its_published_values(data: bytes, checksum: int) -> None:
    assert xxh32_short(data) == checksum


def frame() -> bytes:
    return bytes(cramjam.lz4.compress(b"some text, some text"))


def test_correct_header_is_unchanged() -> None:
    assert fix_header_checksum(frame()) == frame()


def test_header_with_a_content_size_is_supported() -> None:
    # FLG with the content size bit; the checksum then comes eight bytes later.
    sized = bytes.fromhex("04224d18 68 40 0100000000000000") + b"\x00" + b"rest"
    mended = fix_header_checksum(sized)
    assert mended[:14] == sized[:14]
    assert mended[14] == xxh32_short(sized[4:14]) >> 8 & 0xFF
    assert mended[15:] == b"rest"


def test_wrong_checksum_of_old_clients_is_fixed() -> None:
    wrong = bytearray(frame())
    wrong[6] = xxh32_short(bytes(wrong[:6])) >> 8 & 0xFF  # over the magic too: KAFKA-3160.
    assert wrong != frame()
    assert fix_header_checksum(bytes(wrong)) == frame()


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"not a frame at all"])
def test_invalid_frame_is_rejected(data: bytes) -> None:
    with pytest.raises(CorruptBatchError, match="LZ4"):
        fix_header_checksum(data)
