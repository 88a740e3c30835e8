"""The selected records of a batch, compared with a direct implementation of the rule."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from doubles.end_marker import ControlType, build_end_marker
from kafscale.records import BatchView, Codec, Header, Record, TimestampType, build, iterate
from kafscale.spark.codec.aborted_batches import AbortedBatches
from kafscale.spark.jobs.restore.task import Selection
from kafscale.storage.log.state.transactions import AbortedTransaction, TransactionSpans

BASE = 100
times = st.integers(0, 20)
headers = st.lists(
    st.builds(Header, st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2
).map(tuple)
fields = st.tuples(
    times, st.none() | st.binary(max_size=5), st.none() | st.binary(max_size=5), headers
)
gaps = st.lists(st.integers(1, 3), min_size=1, max_size=8)


@st.composite
def batches(draw):
    offset = BASE - 1
    records = []
    for gap in draw(gaps):
        offset += gap
        records.append(Record(offset, *draw(fields)))
    kind = draw(st.sampled_from(TimestampType))
    return BatchView(build(records, codec=draw(st.sampled_from(Codec)), timestamp_type=kind))


@given(batches(), st.integers(95, 125), st.integers(95, 125), st.none() | times)
def test_selected_records_are_those_within_the_bounds(batch, start, end, until_ms):
    selection = Selection(start, end, until_ms)
    expected = [
        msgspec.structs.replace(record, offset=0)
        for record in iterate(batch)
        if start <= record.offset < end and (until_ms is None or record.timestamp_ms <= until_ms)
    ]
    selected = selection.select(batch)
    if selected is None:
        assert expected == []
        return
    view = BatchView(selected)
    view.validate()  # As a broker validates batches of producers.
    assert [msgspec.structs.replace(record, offset=0) for record in iterate(view)] == expected
    assert view.codec is batch.codec


@given(batches())
def test_fully_selected_plain_batch_is_copied(batch):
    selection = Selection(0, 1000, None)
    is_plain = (
        batch.timestamp_type is TimestampType.CREATE_TIME
        and batch.count == batch.last_offset_delta + 1
    )
    assert selection.is_copyable(batch) == is_plain
    assert (selection.select(batch) == bytes(batch.buffer)) == is_plain


def test_batches_of_aborted_transactions_are_left_out():
    def batch(offset, **fields):
        records = [Record(offset, 5, b"key", b"value")]
        return BatchView(build(records, producer_epoch=0, base_sequence=0, **fields))

    spans = TransactionSpans.of([AbortedTransaction(1, 4, 8), AbortedTransaction(2, 6, 9)])
    selection = Selection(0, 20, aborted=AbortedBatches(spans))
    for offset, producer_id, is_selected in [
        (3, 1, True),
        (4, 1, False),
        (7, 1, False),
        (9, 1, True),
        (4, 2, True),
        (8, 2, False),
        (5, 3, True),
    ]:
        aborted = batch(offset, producer_id=producer_id, transactional=True)
        assert (selection.select(aborted) is not None) is is_selected
        assert selection.select(batch(offset, producer_id=producer_id)) is not None


def test_transactional_batch_becomes_plain_and_its_marker_is_dropped():
    records = [Record(0, 5, b"key", b"value")]
    batch = BatchView(
        build(records, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    selection = Selection(0, 10)
    selected = BatchView(selection.select(batch))
    assert not selected.is_transactional
    assert list(iterate(selected)) == records
    marker = build_end_marker(
        ControlType.COMMIT, offset=1, timestamp_ms=0, producer_id=1, producer_epoch=0
    )
    assert selection.select(BatchView(marker)) is None
