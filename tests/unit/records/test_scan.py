"""The scan of produced records, compiled and interpreted, compared with the reader for tools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import InvalidRecordError
from kafscale.records import BatchView, Header, Record, build, iterate, scan
from kafscale.records.batch import HEADER_BYTES, MAX_TIMESTAMP_POSITION
from unit.records.examples import RECORDS, record_lists, rewritten
from unit.records.interpreted import interpreted

ANY_TIMESTAMP = (scan.INT64_MIN, scan.INT64_MAX)


MODULES = {"as installed": scan, "interpreted": interpreted(scan)}
every_module = pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)


def scanned(module, payload, count, *, step=3, requires_keys=False, deltas=ANY_TIMESTAMP):
    """A finished scan."""
    running = module.RecordScan(memoryview(payload), count, requires_keys, *deltas)
    while running.advance(step):
        pass
    return running


def is_readable(batch: BatchView) -> bool:
    """Whether the reader for tools accepts the batch, with consecutive offsets."""
    try:
        offsets = [record.offset for record in iterate(batch)]
    except InvalidRecordError:
        return False
    return offsets == list(range(batch.base_offset, batch.base_offset + batch.count))


@every_module
@given(records=record_lists(), step=st.integers(1, 9))
def test_batches_of_producers_pass(module, records, step):
    batch = BatchView(build(records))
    done = scanned(module, batch.payload, batch.count, step=step)
    newest_ms = max(record.timestamp_ms for record in records)
    assert batch.base_timestamp_ms + done.largest_timestamp_delta == newest_ms


@every_module
@given(data=st.data())
def test_damaged_batches_pass_if_and_only_if_they_are_readable(module, data):
    batch = BatchView(bytearray(build(RECORDS)))
    size = len(batch.buffer) - HEADER_BYTES
    for position in data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3)):
        batch.buffer[HEADER_BYTES + position] = data.draw(st.integers(0, 255))
    batch = rewritten(batch, MAX_TIMESTAMP_POSITION, ">q", 0)
    # All deltas for which the timestamp fits 64 bits.
    deltas = (scan.INT64_MIN, scan.INT64_MAX - batch.base_timestamp_ms)
    try:
        passes = not scanned(module, batch.payload, batch.count, deltas=deltas).out_of_range
    except InvalidRecordError:
        passes = False
    assert passes == is_readable(batch)


@every_module
@given(payload=st.binary(max_size=60), count=st.integers(1, 2**31 - 1))
def test_garbage_is_refused(module, payload, count):
    """Random bytes are practically never records; what is tested is that nothing else happens."""
    try:
        done = scanned(module, payload, count, step=1000)
    except InvalidRecordError:
        return
    assert done.largest_timestamp_delta != scan.INT64_MIN


@every_module
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "past the end"),
        ("80", "past the end"),
        ("0e 00 00 00 01", "does not fit"),
        ("0c0000020101 00", "offset delta 1"),
        ("0e 00 00 00 01 01 00 00", "end 1 bytes before"),
        ("0c 00 00 00 03 01 00", "-2 bytes"),
        ("0c 00 00 00 01 01 01", "-1 headers"),
        ("0c 00 00 00 01 01 02", "1 headers"),
        ("10 00 00 00 01 01 02 01 00", "no key"),
        ("0c 00 00 00 01 01 00 00", "extra bytes"),
        ("0c 00 80 80 80 80 80 80 80 80 80 80", "64 bits|past the end|does not fit"),
    ],
)
def test_errors_say_what_is_wrong(module, body, reason):
    with pytest.raises(InvalidRecordError, match=reason):
        scanned(module, bytes.fromhex(body), 1)


@every_module
def test_refused_records_are_listed(module):
    records = [
        Record(n, 1000 + n, None if n % 2 else b"k", b"v", (Header("h", b""),)) for n in range(500)
    ]
    batch = BatchView(build(records))
    done = scanned(module, batch.payload, batch.count, requires_keys=True, deltas=(2, 101))
    assert done.without_key == list(range(1, 200, 2))
    assert done.out_of_range[:3] == [(0, 0), (1, 1), (102, 102)]
    assert len(done.out_of_range) == scan.REFUSED_MAX
