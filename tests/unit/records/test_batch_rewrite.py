"""Rewritten batches differ from the original only in the dropped records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import (
    BatchView,
    Codec,
    Header,
    Record,
    TimestampType,
    batch_rewrite,
    build,
    inflate,
    iterate,
)
from unit.spark.jobs.keyed_log import delete_horizon_ms

TIMES = st.integers(-(2**40), 2**45)
BYTES = st.none() | st.binary(max_size=30)
HEADERS = st.lists(st.builds(Header, st.text(max_size=3), BYTES), max_size=2).map(tuple)


@st.composite
def batches(draw):
    """A batch, perhaps with offset gaps, with or without a producer id."""
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


def rebuild(batch, kept, **options):
    return batch_rewrite.rebuild_batch(batch, inflate(batch), bytes(kept), **options)


def check_same_header(rewritten, batch):
    """Check the fields that no rewrite may change."""
    rewritten.validate(from_producer=False)
    assert rewritten.codec == batch.codec
    assert rewritten.timestamp_type == batch.timestamp_type
    for name in ("leader_epoch", "producer_id", "producer_epoch", "last_sequence"):
        assert getattr(rewritten, name) == getattr(batch, name)


@given(batches(), st.data())
def test_rebuilt_batch_has_the_kept_records(batch, data):
    records = list(iterate(batch))
    kept = data.draw(st.lists(st.booleans(), min_size=len(records), max_size=len(records)))
    kept[data.draw(st.integers(0, len(records) - 1))] = True
    options = {
        "horizon_ms": data.draw(st.none() | st.integers(0, batch_rewrite.HORIZON_MS_MAX)),
        "base_offset": data.draw(st.none() | st.integers(0, batch.base_offset)),
    }
    if options["base_offset"] is not None and batch.last_offset - options["base_offset"] >= 2**31:
        options["base_offset"] = batch.base_offset
    rewritten = rebuild(batch, kept, **options)
    left = [record for record, is_kept in zip(records, kept, strict=True) if is_kept]
    assert list(iterate(rewritten)) == left
    check_same_header(rewritten, batch)
    base_offset = batch.base_offset if options["base_offset"] is None else options["base_offset"]
    assert (rewritten.base_offset, rewritten.last_offset) == (base_offset, batch.last_offset)
    assert delete_horizon_ms(rewritten) == options["horizon_ms"]
    if batch.timestamp_type is TimestampType.CREATE_TIME:
        assert rewritten.max_timestamp_ms == max(record.timestamp_ms for record in left)
    else:
        assert rewritten.max_timestamp_ms == batch.max_timestamp_ms


@given(batches(), st.integers(0, 2**30))
def test_extended_batch_has_a_later_last_offset(batch, by):
    rewritten = batch_rewrite.extend_batch(batch, batch.last_offset + by)
    assert rewritten.last_offset == batch.last_offset + by
    assert list(iterate(rewritten)) == list(iterate(batch))
    assert rewritten.max_timestamp_ms == batch.max_timestamp_ms
    check_same_header(rewritten, batch)


@given(batches(), st.integers(-40, 40))
def test_rebased_batch_drops_records_before_its_base_offset(batch, by):
    base_offset = max(batch.base_offset + by, 0)
    rewritten = batch_rewrite.rebase_batch(batch, base_offset)
    left = [record for record in iterate(batch) if record.offset >= base_offset]
    assert ([] if rewritten is None else list(iterate(rewritten))) == left
    if rewritten is not None:
        assert (rewritten.base_offset, rewritten.last_offset) == (base_offset, batch.last_offset)
        check_same_header(rewritten, batch)


@given(batches())
def test_last_record_is_kept(batch):
    rewritten = batch_rewrite.keep_last_record(batch)
    assert list(iterate(rewritten)) == list(iterate(batch))[-1:]
    check_same_header(rewritten, batch)


def test_horizon_is_omitted_if_a_delta_would_overflow():
    """Timestamps near the least 64-bit integer are hostile, not accidental."""
    batch = BatchView(build([Record(0, -(2**63), b"key", None)]))
    rewritten = rebuild(batch, [True], horizon_ms=2**41)
    assert list(iterate(rewritten)) == list(iterate(batch))
    assert delete_horizon_ms(rewritten) is None


@pytest.mark.parametrize("codec", Codec)
def test_batch_that_keeps_all_records_is_rebuilt_identically(codec):
    records = [Record(index, 5, b"key", b"value" * 20) for index in range(50)]
    batch = BatchView(build(records, codec=codec))
    assert bytes(rebuild(batch, [True] * 50).buffer) == bytes(batch.buffer)
