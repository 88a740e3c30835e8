"""Which records of a batch are restored, against a plain reading of the rule."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView, Codec, Header, Record, TimestampType, build, iterate
from kafscale.records.control_batch import ControlType, build_end_marker
from kafscale.spark.jobs.restore.selection import Selection

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
def test_what_is_chosen_is_what_the_rule_says(batch, start, end, until_ms):
    selection = Selection(start, end, until_ms)
    wanted = [
        msgspec.structs.replace(record, offset=0)
        for record in iterate(batch)
        if start <= record.offset < end and (until_ms is None or record.timestamp_ms <= until_ms)
    ]
    chosen = selection.chosen(batch)
    if chosen is None:
        assert wanted == []
        return
    view = BatchView(chosen)
    view.validate()  # As a broker does with what a producer sends.
    assert [msgspec.structs.replace(record, offset=0) for record in iterate(view)] == wanted
    assert view.codec is batch.codec


@given(batches())
def test_a_batch_of_which_all_is_wanted_is_copied_as_it_is(batch):
    selection = Selection(0, 1000, None)
    is_plain = (
        batch.timestamp_type is TimestampType.CREATE_TIME
        and batch.count == batch.last_offset_delta + 1
    )
    assert selection.is_whole(batch) == is_plain
    assert (selection.chosen(batch) == bytes(batch.buffer)) == is_plain


def test_batches_of_transactions_become_plain_and_their_markers_vanish():
    records = [Record(0, 5, b"key", b"value")]
    batch = BatchView(
        build(records, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    selection = Selection(0, 10)
    chosen = BatchView(selection.chosen(batch))
    assert not chosen.is_transactional
    assert list(iterate(chosen)) == records
    marker = build_end_marker(
        ControlType.COMMIT, offset=1, timestamp_ms=0, producer_id=1, producer_epoch=0
    )
    assert selection.chosen(BatchView(marker)) is None
