"""The open WAL object: batches by partition."""

import pytest

from kafscale.storage.wal.buffer.open_object import OpenObject


def test_open_object_groups_batches_by_partition_in_order_of_arrival():
    object_ = OpenObject()
    assert object_.is_empty
    first, second, third = memoryview(b"first"), memoryview(b"second"), memoryview(b"third")
    object_.add("b", first, 10, 12, 3, 500, now_ms=7)
    object_.add("a", second, 0, 0, 1, 100, now_ms=8)
    object_.add("b", third, 13, 13, 1, 400, now_ms=9)
    b, a = object_.partitions()
    assert (b.key, b.base_offset, b.last_offset, b.count) == ("b", 10, 13, 4)
    assert (b.max_timestamp_ms, b.size_bytes) == (500, 10)
    assert (a.key, a.base_offset, a.last_offset, a.count) == ("a", 0, 0, 1)
    assert b.buffers[0] is first
    assert b.buffers[1] is third
    assert (object_.size_bytes, object_.count, object_.opened_ms) == (16, 5, 7)


def test_open_object_asserts_contiguous_offsets():
    object_ = OpenObject()
    object_.add("events-0", memoryview(b"x"), 0, 0, 1, 77, now_ms=0)
    with pytest.raises(AssertionError, match="events-0: gap before offset 2"):
        object_.add("events-0", memoryview(b"x"), 2, 2, 1, 0, now_ms=0)
