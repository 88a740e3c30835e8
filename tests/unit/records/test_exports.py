"""The public names of the package."""

from kafscale import records


def test_public_names() -> None:
    assert set(records.__all__) == {
        "DECOMPRESSED_BYTES_MAX",
        "BatchView",
        "Codec",
        "Header",
        "Record",
        "TimestampType",
        "build",
        "down_convert",
        "inflate",
        "iterate",
        "recompress",
        "single_batch",
        "split",
        "up_convert",
    }
    assert all(hasattr(records, name) for name in records.__all__)
