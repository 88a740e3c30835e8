"""Attacks the kernel with bytes and with tables that lie, in arrays that lie between canaries.

Run as a program it does so with the bounds checks that numba can compile in, which raise IndexError
where one of ours is missing; that needs `NUMBA_BOUNDSCHECK=1` and a cache of its own.
"""

from random import Random

import numba
import numpy as np

from kafscale.spark.codec import decoder_kernel as kernel
from kafscale.spark.codec.decoder_kernel import Spans, Table
from unit.spark.decoder_samples import hostile

CANARY = 0x5A
PADDING = 64
NUMBERS = (-(2**63), -(2**31), -1000, -2, -1, 0, 1, 2, 3, 50, 1000, 2**31 - 1, 2**63 - 1)


class Cage:
    """Hands out arrays with canaries on both sides, and tells whether all are alive."""

    def __init__(self):
        self._held = []

    def array(self, count, dtype):
        size_bytes = count * np.dtype(dtype).itemsize
        held = np.full(size_bytes + 2 * PADDING, CANARY, np.uint8)
        self._held.append(held)
        return held[PADDING : PADDING + size_bytes].view(dtype)

    def spans(self, count):
        spans = Spans(self.array(count, np.int64), self.array(count + 1, np.int32))
        spans.bounds[0] = 0
        return spans

    def lying_spans(self, random):
        """Spans as no scan would make them; the arrays need not even be of one size."""
        positions = self.array(random.randrange(6), np.int64)
        bounds = self.array(random.randrange(7), np.int32)
        positions[:] = [random.choice(NUMBERS) for _ in positions]
        bounds[:] = [random.choice(NUMBERS[1:-1]) for _ in bounds]
        return Spans(positions, bounds)

    def check(self):
        for held in self._held:
            assert (held[:PADDING] == CANARY).all()
            assert (held[-PADDING:] == CANARY).all()


def attack(random):
    """One case: a scan of hostile bytes into tables of any size, and all that comes after it."""
    cage = Cage()
    payload = np.frombuffer(hostile(random).payload, np.uint8)
    source = cage.array(len(payload), np.uint8)
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
        cage.array(sizes[0], np.int64),
        cage.array(sizes[1], np.int64),
        cage.array(sizes[2], np.int32),
        *map(cage.spans, sizes[3:]),
    )
    count = kernel.scan(source, batches, 0, 2**63 - 1, table)
    cage.check()
    spans = [table.keys, table.values, cage.lying_spans(random)]
    for headers in (table.headers, cage.lying_spans(random)):
        named = [cage.spans(random.choice((0, 1, 4))) for _ in range(2)]
        kernel.locate_headers(source, headers, random.choice((count, 1000)), *named)
        spans += named
    for some in spans:
        output = cage.array(random.choice((0, 1, 10, 200)), np.uint8)
        kernel.gather(source, some, random.choice((count, 1000, -1)), output)
    cage.check()


@numba.njit
def read(array, index):
    return array[index]


def main():
    try:
        read(np.zeros(1), 10)
    except IndexError:
        pass
    else:
        raise SystemExit("the bounds are not checked")
    random = Random(0)
    for _ in range(3000):
        attack(random)


if __name__ == "__main__":
    main()
