"""The batches of one call of the decoder, handled as columns: verified, chosen, laid out.

Small batches are common, and a Python object for each field of each header would cost more than
their records do; so the headers of all are read as one array. The laws: every batch is verified by
its checksum before anything that it says is believed, also where that only lets it be skipped; and
the offsets of a batch that passed ascend and fit 64 bits.
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
from kafscale.spark.codec.decoder_kernel import BATCH

_HEADER: Final = np.dtype(
    [(name, ">" + code) for name, code in zip(BatchHeader._fields, HEADER.format[1:], strict=True)]
)
"""The header of a batch, for numpy."""
_TAKEN: Final = tuple(name for name in BatchHeader._fields if name in (BATCH.names or ()))
"""What the kernel must know of a header."""

assert _HEADER.itemsize == HEADER_BYTES
assert {"position", "size_bytes", *_TAKEN} == set(BATCH.names or ())


class Chosen(NamedTuple):
    """Verified batches that may hold wanted records, and their headers."""

    batches: Sequence[BatchView]
    headers: NDArray[np.void]

    @property
    def compressed(self) -> list[bool]:
        """Of each batch, whether its records must be decompressed."""
        return list((self.headers["attributes"] & CODEC_MASK != Codec.NONE).tolist())

    def part(self, start: int, end: int) -> "Chosen":
        return Chosen(self.batches[start:end], self.headers[start:end])


def choose(
    key: str,
    batches: Sequence[BatchView],
    start_offset: int,
    end_offset: int,
    from_ms: int | None,
    *,
    is_verified: bool = False,
) -> Chosen:
    """Verify all batches of the object `key`, and leave out those of which nothing is wanted.

    Where all that is read `is_verified`, whoever read it has compared the checksums already.
    """
    joined = b"".join([batch.buffer[:HEADER_BYTES] for batch in batches])
    headers = np.frombuffer(pa.py_buffer(joined), _HEADER)
    _verify(key, batches, headers, is_verified=is_verified)
    base_offsets = headers["base_offset"]
    last_offsets = base_offsets + headers["last_offset_delta"]
    wanted = (base_offsets < end_offset) & (last_offsets >= start_offset)
    wanted &= headers["attributes"] & CONTROL_BIT == 0
    if from_ms is not None:
        wanted &= headers["max_timestamp_ms"] >= from_ms
    return Chosen([batches[index] for index in np.flatnonzero(wanted).tolist()], headers[wanted])


def lay_out(payloads: Sequence[memoryview]) -> tuple[NDArray[np.uint8], list[int]]:
    """One array that holds all payloads, and where in it each begins.

    Batches of one object are mostly slices of what was read at once: then it is that, uncopied.
    """
    owners = {id(payload.obj) for payload in payloads}
    if len(owners) == 1:
        whole = pa.py_buffer(payloads[0].obj)
        positions = [pa.py_buffer(payload).address - whole.address for payload in payloads]
    else:
        whole = pa.py_buffer(b"".join(payloads))
        positions = [0, *accumulate(map(len, payloads))][:-1]
    source = np.frombuffer(whole, np.uint8)
    source.flags.writeable = False  # So that it has one type for the compiler, whoever owns it.
    return source, positions


def entries(
    headers: NDArray[np.void], payloads: Sequence[memoryview], positions: Sequence[int]
) -> NDArray[np.void]:
    """What the kernel must know of the batches."""
    table = np.empty(len(headers), BATCH)
    table["position"] = positions
    table["size_bytes"] = [len(payload) for payload in payloads]
    for name in _TAKEN:
        table[name] = headers[name]
    return table


def _verify(
    key: str, batches: Sequence[BatchView], headers: NDArray[np.void], *, is_verified: bool
) -> None:
    base_offsets = headers["base_offset"]
    last_offsets = base_offsets + headers["last_offset_delta"]
    # A sum that does not fit 64 bits comes out negative.
    wrong = (base_offsets < 0) | (last_offsets < base_offsets)
    if not is_verified:
        computed = [crc32c(batch.buffer[ATTRIBUTES_POSITION:]) for batch in batches]
        wrong |= headers["checksum"] != computed
    if wrong.any():
        batch = batches[int(wrong.argmax())]
        try:
            batch.verify_checksum()
        except CorruptBatchError as error:
            raise DamagedObjectError(key, str(error)) from error
        raise DamagedObjectError(key, f"invalid offsets in {batch!r}")
