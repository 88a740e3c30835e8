"""The input of the decoder's kernel: verified batches with selected records, and their payloads.

Small batches are common, and a Python object for each header field would cost more than their
records; so the headers of all batches are read as one numpy array. Invariants: the checksum of a
batch is verified before any of its fields is used, also if it is then skipped; the offsets of a
verified batch ascend and fit 64 bits.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafscale.errors import CorruptBatchError, DamagedObjectError
from kafscale.records import BatchView, Codec
from kafscale.records.batch import (
    ATTRIBUTES_POSITION,
    CONTROL_BIT,
    HEADER,
    HEADER_BYTES,
    BatchHeader,
)
from kafscale.records.checksum import crc32c
from kafscale.records.compression import CODEC_MASK
from kafscale.spark.codec.aborted_batches import NONE_ABORTED, AbortedBatches
from kafscale.spark.codec.decoder_kernel import BATCH

_HEADER: Final = np.dtype(
    [(name, ">" + code) for name, code in zip(BatchHeader._fields, HEADER.format[1:], strict=True)]
)
"""The batch header as a numpy type."""
_KERNEL_FIELDS: Final = tuple(name for name in BatchHeader._fields if name in (BATCH.names or ()))
"""The header fields that the kernel needs."""

assert _HEADER.itemsize == HEADER_BYTES
assert {"position", "size_bytes", *_KERNEL_FIELDS} == set(BATCH.names or ())


class SelectedBatches(NamedTuple):
    """Verified batches that may hold selected records, and their headers."""

    batches: Sequence[BatchView]
    headers: NDArray[np.void]

    @property
    def compressed(self) -> list[bool]:
        """For each batch, whether its records are compressed."""
        return list((self.headers["attributes"] & CODEC_MASK != Codec.NONE).tolist())

    def part(self, start: int, end: int) -> "SelectedBatches":
        return SelectedBatches(self.batches[start:end], self.headers[start:end])


def select(
    key: str,
    batches: Sequence[BatchView],
    start_offset: int,
    end_offset: int,
    since_ms: int | None,
    *,
    aborted: AbortedBatches = NONE_ABORTED,
    is_verified: bool = False,
) -> SelectedBatches:
    """Verify the batches of an object, and select those with records in the range.

    Control batches and aborted ones are left out. `is_verified` means that the caller has compared
    the checksums.
    """
    joined = b"".join([batch.buffer[:HEADER_BYTES] for batch in batches])
    headers = np.frombuffer(pa.py_buffer(joined), _HEADER)
    _verify(key, batches, headers, is_verified=is_verified)
    base_offsets = headers["base_offset"]
    last_offsets = base_offsets + headers["last_offset_delta"]
    is_selected = (base_offsets < end_offset) & (last_offsets >= start_offset)
    is_selected &= headers["attributes"] & CONTROL_BIT == 0
    if aborted:
        is_selected &= ~aborted.mask(headers["attributes"], headers["producer_id"], last_offsets)
    if since_ms is not None:
        is_selected &= headers["max_timestamp_ms"] >= since_ms
    return SelectedBatches(
        [batches[index] for index in np.flatnonzero(is_selected).tolist()], headers[is_selected]
    )


def join_payloads(payloads: Sequence[memoryview]) -> tuple[NDArray[np.uint8], list[int]]:
    """Return one array that holds all payloads, and the position of each in it.

    Payloads that are slices of one buffer are not copied.
    """
    owners = {id(payload.obj) for payload in payloads}
    if len(owners) == 1:
        whole = pa.py_buffer(payloads[0].obj)
        positions = [pa.py_buffer(payload).address - whole.address for payload in payloads]
    else:
        whole = pa.py_buffer(b"".join(payloads))
        positions = [0, *accumulate(map(len, payloads))][:-1]
    source = np.frombuffer(whole, np.uint8)
    source.flags.writeable = False  # One type for the compiler, for any owner.
    return source, positions


def kernel_batches(
    headers: NDArray[np.void], payloads: Sequence[memoryview], positions: Sequence[int]
) -> NDArray[np.void]:
    """Return the batches as the kernel needs them."""
    batches = np.empty(len(headers), BATCH)
    batches["position"] = positions
    batches["size_bytes"] = [len(payload) for payload in payloads]
    for name in _KERNEL_FIELDS:
        batches[name] = headers[name]
    return batches


def _verify(
    key: str, batches: Sequence[BatchView], headers: NDArray[np.void], *, is_verified: bool
) -> None:
    base_offsets = headers["base_offset"]
    last_offsets = base_offsets + headers["last_offset_delta"]
    # A sum that overflows 64 bits is negative.
    is_invalid = (base_offsets < 0) | (last_offsets < base_offsets)
    if not is_verified:
        computed = [crc32c(batch.buffer[ATTRIBUTES_POSITION:]) for batch in batches]
        is_invalid |= headers["checksum"] != computed
    if is_invalid.any():
        batch = batches[int(is_invalid.argmax())]
        try:
            batch.verify_checksum()
        except CorruptBatchError as error:
            raise DamagedObjectError(key, str(error)) from error
        raise DamagedObjectError(key, f"invalid offsets in {batch!r}")
