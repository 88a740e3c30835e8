"""The compiled copier never leaves its arrays, whatever the bytes say."""

from random import Random

import numpy as np
import pytest

from kafscale.records import BatchView, Record, build, inflate
from kafscale.spark.jobs.compact.copy_kernel import FAILED, GROWTH_BYTES_MAX, copy_records

pytestmark = pytest.mark.timeout(120)  # The first test compiles, if nobody did before.

CANARY = 0xA5
EDGE_BYTES = 64


def copied(data, kept, offset_shift=0, timestamp_shift=0, room=None):
    """What is copied out of the middle of an array into the middle of another."""
    source = np.frombuffer(b"\x02" * EDGE_BYTES + data + b"\x02" * EDGE_BYTES, np.uint8)
    source.flags.writeable = False
    room = len(data) + GROWTH_BYTES_MAX * (len(kept) + 1) if room is None else room
    output = np.full(room + 2 * EDGE_BYTES, CANARY, np.uint8)
    inside = output[EDGE_BYTES : EDGE_BYTES + room]
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
    assert (output[EDGE_BYTES + room :] == CANARY).all()
    return None if written == FAILED else inside[:written].tobytes()


def payload(count=5):
    records = [Record(index, index, b"key", b"value" * index) for index in range(count)]
    return inflate(BatchView(build(records)))


def test_what_is_kept_is_copied():
    assert copied(payload(), [True] * 5) == payload()
    assert copied(payload(), [False] * 5) == b""
    assert len(copied(payload(), [True] * 5, 2**30, -(2**60))) > len(payload())


def test_counts_that_lie_are_refused():
    assert copied(payload(), [True] * 4) is None
    assert copied(payload(), [True] * 6) is None
    assert copied(payload()[:-1], [True] * 5) is None


def test_too_little_room_is_refused():
    for room in range(len(payload())):
        assert copied(payload(), [True] * 5, room=room) is None


def test_hostile_bytes_do_no_harm():
    random = Random(7)
    for _ in range(3000):
        data = bytearray(payload(random.randrange(1, 6)))
        for _ in range(random.randrange(1, 4)):
            data[random.randrange(len(data))] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
        kept = [random.random() < 0.7 for _ in range(random.randrange(1, 7))]
        shift = random.choice([0, 0, 5, -(2**31), 2**40])
        copied(bytes(data), kept, shift, random.choice([0, 2**62, -(2**62)]))
