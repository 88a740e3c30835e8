"""Record batches: the bytes that producers send, that segments hold and that consumers get back.

The room is pure and knows no topics. The produce path touches `sole`, `BatchView.validate` and
`BatchView.stamp` only, whose cost is per batch; everything that looks at records is for the edges.
"""

from kafscale.records.batch import BatchView, TimestampType, sole, split
from kafscale.records.builder import build
from kafscale.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from kafscale.records.control_batch import ControlType, build_end_marker, control_type
from kafscale.records.legacy.conversion import down_convert, up_convert
from kafscale.records.payload import inflate, recompress
from kafscale.records.record import Header, Record, iterate

__all__ = [
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
    "sole",
    "split",
    "up_convert",
]
