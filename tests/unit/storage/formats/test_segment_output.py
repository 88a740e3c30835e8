"""A segment built from batches spans all offsets, also those of dropped batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles.end_marker import ControlType, build_end_marker
from kafscale.errors import DamagedObjectError
from kafscale.records import BatchView, Codec, Record, build, iterate
from kafscale.storage.formats import segment
from kafscale.storage.formats.segment_output import SegmentOutput

NOW_MS = 1_750_000_000_000


def batch(base_offset, count, codec=Codec.NONE):
    return BatchView(
        build(
            [Record(base_offset + index, NOW_MS + index, b"k", b"v") for index in range(count)],
            codec=codec,
        )
    )


def finish(output):
    built = output.finish()
    return segment.read("built", b"".join(built.parts))


def offsets(built):
    return [record.offset for each in built.batches for record in iterate(each)]


@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=12),
    st.sampled_from(Codec),
)
def test_offsets_stay_contiguous_whichever_batches_are_dropped(plan, codec):
    end = 100 + sum(count for count, _ in plan)
    output = SegmentOutput(100, end, NOW_MS)
    offset, kept = 100, []
    for count, is_kept in plan:
        each = batch(offset, count, codec)
        if is_kept:
            output.append("key", each)
            kept += range(offset, offset + count)
        else:
            output.drop("key", each)
        offset += count
    built = finish(output)
    assert (built.header.base_offset, built.footer.last_offset) == (100, end - 1)
    for each in built.batches:
        each.validate(from_producer=False)
    assert offsets(built) == (kept or [end - 1])


def test_batches_are_copied_unchanged():
    whole = [batch(0, 3), batch(3, 2, Codec.ZSTD), batch(5, 1)]
    output = SegmentOutput(0, 6, NOW_MS)
    for each in whole:
        output.append("key", each)
    assert [bytes(each.buffer) for each in finish(output).batches] == [
        bytes(each.buffer) for each in whole
    ]


def test_overlapping_batches_are_written_once():
    """As after a crash that left a segment beside the larger one that replaced it."""
    output = SegmentOutput(0, 12, NOW_MS)
    for each in (batch(0, 4), batch(4, 4), batch(2, 6), batch(6, 4), batch(10, 2)):
        output.append("key", each)
    built = finish(output)
    assert offsets(built) == list(range(12))
    assert [each.base_offset for each in built.batches] == [0, 4, 8, 10]


def test_first_control_batch_is_rebased_to_the_base_offset():
    marker = build_end_marker(
        ControlType.COMMIT, offset=7, timestamp_ms=NOW_MS, producer_id=1, producer_epoch=0
    )
    output = SegmentOutput(5, 9, NOW_MS)
    output.append("key", BatchView(marker))
    built = finish(output)
    assert [(each.base_offset, each.next_offset) for each in built.batches] == [(5, 9)]
    assert (offsets(built), built.batches[0].is_control) == ([7], True)


def test_batch_beyond_the_end_offset_is_rejected():
    output = SegmentOutput(0, 4, NOW_MS)
    with pytest.raises(DamagedObjectError, match="ends beyond 4"):
        output.append("key", batch(2, 3))
