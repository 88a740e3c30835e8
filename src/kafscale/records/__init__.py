"""Record batches, as producers send them, segments store them and consumers fetch them. Pure.

The produce path uses only `single_batch`, `BatchView.validate` and `BatchView.stamp`, whose cost is
per batch, and `validation`, whose loop over the records is compiled. Everything else that decodes
single records is for tools, tests and conversions.
"""

from kafscale.records.batch import BatchView, TimestampType, single_batch, split
from kafscale.records.builder import build, recompress
from kafscale.records.compression import DECOMPRESSED_BYTES_MAX, Codec
from kafscale.records.message_set import down_convert, up_convert
from kafscale.records.record import Header, Record, inflate, iterate

__all__ = [
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
]
