"""The compiled copy never reads or writes outside its arrays, whatever the input."""

from random import Random

import numpy as np
import pytest

from kafscale.records import BatchView, Record, build, inflate
from kafscale.spark.jobs.shared.copy_kernel import FAILED, GROWTH_BYTES_MAX, copy_records

pytestmark = pytest.mark.timeout(120)  # The first test compiles, unless the cache is warm.

CANARY = 0xA5
EDGE_BYTES = 64


def copy(data, kept, offset_shift=0, timestamp_shift=0, capacity=None):
    """Copy from the middle of an array to the middle of another."""
    source = np.frombuffer(b"\x02" * EDGE_BYTES + data + b"\x02" * EDGE_BYTES, np.uint8)
    source.flags.writeable = False
    capacity = len(data) + GROWTH_BYTES_MAX * (len(kept) + 1) if capacity is None else capacity
    output = np.full(capacity + 2 * EDGE_BYTES, CANARY, np.uint8)
    inside = output[EDGE_BYTES : EDGE_BYTES + capacity]
    written, _, _ = copy_records(
        source,
        EDGE_BYTES,
        EDGE_BYTES + len(data),
        np.array(kept, np.bool_),
        offset_shift,
        timestamp_shift,
        inside,
    )
    assert (output[:EDGE_BYTES] == CANARY).all()
    assert (output[EDGE_BYTES + capacity :] == CANARY).all()
    return None if written == FAILED else inside[:written].tobytes()


def payload(count=5):
    records = [Record(index, index, b"key", b"value" * index) for index in range(count)]
    return inflate(BatchView(build(records)))


def test_kept_records_are_copied():
    assert copy(payload(), [True] * 5) == payload()
    assert copy(payload(), [False] * 5) == b""
    assert len(copy(payload(), [True] * 5, 2**30, -(2**60))) > len(payload())


def test_wrong_record_counts_are_rejected():
    assert copy(payload(), [True] * 4) is None
    assert copy(payload(), [True] * 6) is None
    assert copy(payload()[:-1], [True] * 5) is None


def test_too_small_output_is_rejected():
    for capacity in range(len(payload())):
        assert copy(payload(), [True] * 5, capacity=capacity) is None


def test_corrupt_input_stays_in_bounds():
    random = Random(7)
    for _ in range(3000):
        data = bytearray(payload(random.randrange(1, 6)))
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
        kept = [random.random() < 0.7 for _ in range(random.randrange(1, 7))]
        shift = random.choice([0, 0, 5, -(2**31), 2**40])
        copy(bytes(data), kept, shift, random.choice([0, 2**62, -(2**62)]))
