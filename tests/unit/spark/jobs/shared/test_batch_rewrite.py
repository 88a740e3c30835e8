"""Batches lose records, and nothing else of them changes for anybody who reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView, Codec, Header, Record, TimestampType, build, iterate
from kafscale.spark.jobs.shared import batch_rewrite
from kafscale.spark.jobs.shared.record_scan import scan

TIMES = st.integers(-(2**40), 2**45)
BYTES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(st.builds(Header, st.text(max_size=3), BYTES), max_size=2).map(tuple)


@st.composite
def batches(draw):
    """A batch, perhaps with gaps, of a producer or none."""
    offset = draw(st.integers(0, 2**40))
    records = []
    for _ in range(draw(st.integers(1, 12))):
        offset += draw(st.integers(1, 3))
        records.append(Record(offset, draw(TIMES), draw(BYTES), draw(BYTES), draw(HEADERS)))
    producer = draw(
        st.sampled_from([{}, {"producer_id": 7, "producer_epoch": 2, "base_sequence": 2**31 - 3}])
    )
    batch = BatchView(
        build(records, codec=draw(st.sampled_from(Codec)), leader_epoch=5, **producer)
    )
    if draw(st.booleans()):
        batch.stamp_append_time(draw(st.integers(0, 2**45)))
    return batch


def rebuilt(batch, kept, **how):
    found = scan("key", [batch])
    entry = found.entries[0]
    return batch_rewrite.rebuilt(
        "key",
        batch,
        found.source,
        int(entry["position"]),
        int(entry["size_bytes"]),
        np.array(kept, np.bool_),
        **how,
    )


def check_same(made, batch):
    """What no change of records may change."""
    made.validate(from_producer=False)
    assert made.codec == batch.codec
    assert made.timestamp_type == batch.timestamp_type
    for name in ("leader_epoch", "producer_id", "producer_epoch", "last_sequence"):
        assert getattr(made, name) == getattr(batch, name)


@given(batches(), st.data())
def test_records_that_stay_are_what_they_were(batch, data):
    records = list(iterate(batch))
    kept = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    kept[data.draw(st.integers(0, len(records) - 1))] = True
    how = {
        "horizon_ms": data.draw(st.none() | st.integers(0, batch_rewrite.HORIZON_MS_MAX)),
        "base_offset": data.draw(st.none() | st.integers(0, batch.base_offset)),
    }
    if how["base_offset"] is not None and batch.last_offset - how["base_offset"] >= 2**31:
        how["base_offset"] = batch.base_offset
    made = rebuilt(batch, kept, **how)
    left = [record for record, is_kept in zip(records, kept, strict=True) if is_kept]
    assert list(iterate(made)) == left
    check_same(made, batch)
    base_offset = batch.base_offset if how["base_offset"] is None else how["base_offset"]
    assert (made.base_offset, made.last_offset) == (base_offset, batch.last_offset)
    assert made.delete_horizon_ms == how["horizon_ms"]
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        assert made.max_timestamp_ms == max(record.timestamp_ms for record in left)
    else:
        assert made.max_timestamp_ms == batch.max_timestamp_ms


@given(batches(), st.integers(0, 2**30))
def test_a_span_is_widened(batch, by):
    made = batch_rewrite.widened(batch, batch.last_offset + by)
    assert made.last_offset == batch.last_offset + by
    assert list(iterate(made)) == list(iterate(batch))
    assert made.max_timestamp_ms == batch.max_timestamp_ms
    check_same(made, batch)


@given(batches(), st.integers(-40, 40))
def test_a_batch_is_moved_and_what_lies_before_is_gone(batch, by):
    base_offset = max(batch.base_offset + by, 0)
    made = batch_rewrite.moved("key", batch, base_offset)
    left = [record for record in iterate(batch) if record.offset >= base_offset]
    assert ([] if made is None else list(iterate(made))) == left
    if made is not None:
        assert (made.base_offset, made.last_offset) == (base_offset, batch.last_offset)
        check_same(made, batch)


@given(batches())
def test_the_last_record_stays(batch):
    made = batch_rewrite.last_record_of("key", batch)
    assert list(iterate(made)) == list(iterate(batch))[-1:]
    check_same(made, batch)


def test_a_horizon_that_no_delta_reaches_is_left_out():
    """A time near the end of all numbers, which no client would send by chance."""
    batch = BatchView(build([Record(0, -(2**63), b"key", None)]))
    made = rebuilt(batch, [True], horizon_ms=2**41)
    assert list(iterate(made)) == list(iterate(batch))
    assert made.delete_horizon_ms is None


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_keeps_all_is_the_same_but_for_its_compression(codec):
    records = [Record(index, 5, b"key", b"value" * 20) for index in range(50)]
    batch = BatchView(build(records, codec=codec))
    assert bytes(rebuilt(batch, [True] * 50).buffer) == bytes(batch.buffer)
