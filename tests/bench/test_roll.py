"""The cost of rolling a batch, which blocks the event loop."""

from random import Random
from string import ascii_letters
from typing import Any

import pytest

from kafscale.records import BatchView, Codec, Record, build
from kafscale.storage.formats import segment
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.log.state.tail import Tail, TailMemory

pytestmark = pytest.mark.bench

TAIL_BYTES = 64 * 1024 * 1024
BATCH_BYTES = 16 * 1024
RECORD_COUNT = 16
BATCHES_PER_RUN = 2
BATCH_SECONDS_MAX = 50e-6


def tail_of(values: list[bytes]) -> Tail:
    """A full tail with runs as in a busy broker."""
    data = build([Record(index, index, None, value) for index, value in enumerate(values)])
    tail = Tail(TailMemory(), 0)
    for first in range(0, TAIL_BYTES // BATCH_BYTES, BATCHES_PER_RUN):
        batches = [BatchView(bytearray(data)) for _ in range(BATCHES_PER_RUN)]
        for number, batch in enumerate(batches, first):
            batch.stamp(number * RECORD_COUNT, 0)
        tail.append(BatchRun.from_batches(batches))
    return tail


def roll(tail: Tail) -> segment.Built:
    builder = segment.Builder(0, 4096, compression=Codec.SNAPPY, prior_max_timestamp_ms=-1)
    for view, positions in tail.unrolled().slices(2 * TAIL_BYTES):
        assert builder.extend(view, positions)
    return builder.finish()


def test_rolling_speed(bench: Any) -> None:
    random = Random(7)
    size_bytes = BATCH_BYTES // RECORD_COUNT - 20
    letters = ["".join(random.choices(ascii_letters, k=size_bytes)) for _ in range(RECORD_COUNT)]
    contents = {
        "random letters": [value.encode() for value in letters],
        "words": [(b"some words of record %d " % n * 99)[:size_bytes] for n in range(RECORD_COUNT)],
    }
    for name, values in contents.items():
        tail = tail_of(values)
        assert roll(tail).last_offset == tail.runs[-1].last_offset
        seconds = bench.measure(
            f"roll 64 MiB of {name} in batches of 16 KiB",
            lambda tail=tail: roll(tail),
            size_bytes=tail.unrolled_bytes,
            number=1,
        )
        assert seconds / (TAIL_BYTES // BATCH_BYTES) < BATCH_SECONDS_MAX
