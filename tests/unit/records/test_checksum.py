"""The checksums against their published check values."""

from kafscale.records.checksum import crc32, crc32c

CHECK = b"123456789"


def test_crc32c_has_its_check_value() -> None:
    assert crc32c(CHECK) == 0xE3069283


def test_crc32_has_its_check_value() -> None:
    assert crc32(CHECK) == 0xCBF43926


def test_any_slice_of_any_buffer_is_accepted() -> None:
    padded = bytearray(b"xx" + CHECK + b"yy")
    assert crc32c(memoryview(padded)[2:-2]) == 0xE3069283
    assert crc32(memoryview(bytes(padded))[2:-2]) == 0xCBF43926


def test_crc32c_continues_from_the_checksum_of_preceding_data() -> None:
    assert crc32c(CHECK[4:], crc32c(CHECK[:4])) == crc32c(CHECK)
