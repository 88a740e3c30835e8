"""The public names of the package."""

from kafscale import records


def test_public_names() -> None:
    assert set(records.__all__) == {
        "DECOMPRESSED_BYTES_MAX",
        "BatchView",
        "Codec",
        "ControlType",
        "Header",
        "Record",
        "TimestampType",
        "build",
        "build_end_marker",
        "control_type",
        "down_convert",
        "inflate",
        "iterate",
        "recompress",
        "single_batch",
        "split",
        "up_convert",
    }
    assert all(hasattr(records, name) for name in records.__all__)
