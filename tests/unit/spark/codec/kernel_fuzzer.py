"""Fuzzes the decoder kernel with invalid bytes and tables, in arrays between guard bytes.

Run as a program with `NUMBA_BOUNDSCHECK=1` and a cache directory of its own, it uses numba's bounds
checks, which raise IndexError where the kernel lacks a check.
"""

from random import Random

import numba
import numpy as np

from kafscale.spark.codec import decoder_kernel as kernel
from kafscale.spark.codec.decoder_kernel import Spans, Table
from unit.spark.codec.batch_samples import malformed_batch

GUARD = 0x5A
PADDING = 64
NUMBERS = (-(2**63), -(2**31), -1000, -2, -1, 0, 1, 2, 3, 50, 1000, 2**31 - 1, 2**63 - 1)


class GuardedArrays:
    """Allocates arrays with guard bytes on both sides and checks that the guards are intact."""

    def __init__(self):
        self._buffers = []

    def array(self, count, dtype):
        size_bytes = count * np.dtype(dtype).itemsize
        buffer = np.full(size_bytes + 2 * PADDING, GUARD, np.uint8)
        self._buffers.append(buffer)
        return buffer[PADDING : PADDING + size_bytes].view(dtype)

    def spans(self, count):
        spans = Spans(self.array(count, np.int64), self.array(count + 1, np.int32))
        spans.bounds[0] = 0
        return spans

    def invalid_spans(self, random):
        """Return spans that no scan produces; the arrays may differ in size."""
        positions = self.array(random.randrange(6), np.int64)
        bounds = self.array(random.randrange(7), np.int32)
        positions[:] = [random.choice(NUMBERS) for _ in positions]
        bounds[:] = [random.choice(NUMBERS[1:-1]) for _ in bounds]
        return Spans(positions, bounds)

    def check(self):
        for buffer in self._buffers:
            assert (buffer[:PADDING] == GUARD).all()
            assert (buffer[-PADDING:] == GUARD).all()


def fuzz_kernel(random):
    """Scan one malformed batch into tables of any size, then locate headers and gather."""
    arrays = GuardedArrays()
    payload = np.frombuffer(malformed_batch(random).payload, np.uint8)
    source = arrays.array(len(payload), np.uint8)
    source[:] = payload
    source.flags.writeable = False
    batches = np.zeros(random.choice((1, 1, 2)), kernel.BATCH)
    batches["size_bytes"] = len(payload)
    batches["record_count"] = random.choice((0, 1, 2, 3, 5, 1000, -1))
    batches["last_offset_delta"] = random.choice((2, 5, 2**31 - 1))
    if random.random() < 0.2:
        batches[random.choice(kernel.BATCH.names)] = random.choice(NUMBERS)
    sizes = [random.choice((0, 1, 2, 20)) for _ in range(6)]
    table = Table(
        arrays.array(sizes[0], np.int64),
        arrays.array(sizes[1], np.int64),
        arrays.array(sizes[2], np.int32),
        *map(arrays.spans, sizes[3:]),
    )
    count = kernel.scan(source, batches, 0, 2**63 - 1, table)
    arrays.check()
    spans = [table.keys, table.values, arrays.invalid_spans(random)]
    for headers in (table.headers, arrays.invalid_spans(random)):
        named = [arrays.spans(random.choice((0, 1, 4))) for _ in range(2)]
        kernel.locate_headers(source, headers, random.choice((count, 1000)), *named)
        spans += named
    for some in spans:
        output = arrays.array(random.choice((0, 1, 10, 200)), np.uint8)
        kernel.gather(source, some, random.choice((count, 1000, -1)), output)
    arrays.check()


@numba.njit
def read(array, index):
    return array[index]


def main():
    try:
        read(np.zeros(1), 10)
    except IndexError:
        pass
    else:
        raise SystemExit("numba does not check bounds")
    random = Random(0)
    for _ in range(3000):
        fuzz_kernel(random)


if __name__ == "__main__":
    main()
