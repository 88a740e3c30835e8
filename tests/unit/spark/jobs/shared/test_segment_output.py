"""A segment that is made of batches, some of which are left out, spans all of their offsets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView, Codec, Record, build, iterate
from kafscale.records.control_batch import ControlType, build_end_marker
from kafscale.spark.jobs.shared.segment_output import Output
from kafscale.storage.formats import segment

NOW_MS = 1_750_000_000_000


def batch(base_offset, count, codec=Codec.NONE):
    return BatchView(
        build(
            [Record(base_offset + index, NOW_MS + index, b"k", b"v") for index in range(count)],
            codec=codec,
        )
    )


def made(output):
    built = output.finish()
    return segment.read("made", b"".join(built.parts))


def offsets(found):
    return [record.offset for each in found.batches for record in iterate(each)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=12),
    st.sampled_from(Codec),
)
def test_offsets_stay_contiguous_whatever_is_left_out(plan, codec):
    end = 100 + sum(count for count, _ in plan)
    output = Output(100, end, NOW_MS)
    offset, kept = 100, []
    for count, is_kept in plan:
        each = batch(offset, count, codec)
        if is_kept:
            output.append("key", each)
            kept += range(offset, offset + count)
        else:
            output.leave_out("key", each)
        offset += count
    found = made(output)
    assert (found.header.base_offset, found.footer.last_offset) == (100, end - 1)
    for each in found.batches:
        each.validate(from_producer=False)
    assert offsets(found) == (kept or [end - 1])


def test_batches_are_taken_as_they_are():
    whole = [batch(0, 3), batch(3, 2, Codec.ZSTD), batch(5, 1)]
    output = Output(0, 6, NOW_MS)
    for each in whole:
        output.append("key", each)
    assert [bytes(each.buffer) for each in made(output).batches] == [
        bytes(each.buffer) for each in whole
    ]


def test_what_overlaps_is_taken_once():
    """As where a crash has left a segment beside the larger one that it became part of."""
    output = Output(0, 12, NOW_MS)
    for each in (batch(0, 4), batch(4, 4), batch(2, 6), batch(6, 4), batch(10, 2)):
        output.append("key", each)
    found = made(output)
    assert offsets(found) == list(range(12))
    assert [each.base_offset for each in found.batches] == [0, 4, 8, 10]


def test_a_control_batch_takes_over_the_span_before_it():
    marker = build_end_marker(
        ControlType.COMMIT, offset=7, timestamp_ms=NOW_MS, producer_id=1, producer_epoch=0
    )
    output = Output(5, 9, NOW_MS)
    output.append("key", BatchView(marker))
    found = made(output)
    assert [(each.base_offset, each.next_offset) for each in found.batches] == [(5, 9)]
    assert (offsets(found), found.batches[0].is_control) == ([7], True)


def test_what_does_not_belong_there_is_refused():
    output = Output(0, 4, NOW_MS)
    with pytest.raises(DamagedObjectError, match="ends beyond 4"):
        output.append("key", batch(2, 3))
