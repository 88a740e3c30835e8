"""`segment.Builder.extend`: the result does not depend on how batches are grouped in runs."""

from itertools import accumulate, pairwise
from random import Random

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from kafscale.records import BatchView, Codec, recompress
from kafscale.storage.formats import index, segment
from kafscale.storage.log.state.batch_run import BatchRun
from kafscale.storage.log.state.tail import Tail, TailMemory, Unrolled
from unit.storage.samples import CREATED_MS, batch, batch_lists, joined

KEY = "default/orders/0/segment-00000000000000000000.kfs"
INTERVAL_BYTES = 4096
PRIOR_MS = 77
SECTIONS = {b"PROD": b"state"}


def new_builder(compression: Codec | None) -> segment.Builder:
    return segment.Builder(
        CREATED_MS, INTERVAL_BYTES, compression=compression, prior_max_timestamp_ms=PRIOR_MS
    )


def expected(batches: list[BatchView], compression: Codec | None) -> tuple[bytes, bytes]:
    """A segment and its index, batch by batch as the format and the rule of compression say."""
    stored = []
    skipped = skipped_max = 0
    for each in batches:
        if compression in (None, Codec.NONE) or each.codec is not Codec.NONE or each.is_control:
            stored.append(each)
        elif skipped < skipped_max:
            skipped += 1
            stored.append(each)
        else:
            smaller = BatchView(recompress(each, compression))
            is_worth_it = len(smaller) < len(each)
            skipped = 0
            skipped_max = 0 if is_worth_it else min(2 * skipped_max + 1, segment.UNTRIED_COUNT_MAX)
            stored.append(smaller if is_worth_it else each)
    body = b"".join(each.buffer for each in stored)
    codecs = {each.codec for each in stored}
    flags = codecs.pop() if len(codecs) == 1 else 0
    count = sum(each.count for each in batches)
    header = segment.Header(batches[0].base_offset, count, CREATED_MS, flags)
    footer = segment.Footer(crc32c(body), batches[-1].last_offset)
    entries = index.rebuild(stored, INTERVAL_BYTES, prior_max_timestamp_ms=PRIOR_MS)
    entries.sections.update(SECTIONS)
    return header.encode() + body + footer.encode(), entries.encode()


def waiting_in(batches: list[BatchView], cuts: list[int], from_offset: int = 0) -> Unrolled:
    """The batches in a tail, in runs that end at these numbers of batches."""
    tail = Tail(TailMemory(), 0)
    edges = sorted({0, len(batches), *(cut for cut in cuts if 0 < cut < len(batches))})
    for start, stop in pairwise(edges):
        tail.append(BatchRun.from_batches(batches[start:stop]))
    tail.mark_rolled(from_offset)
    return tail.unrolled()


def mixed(seed: int, count: int = 150) -> list[BatchView]:
    """Spells of what shrinks and what does not, with batches among them that must stay."""
    random = Random(seed)
    batches = []
    next_offset = 1000
    while len(batches) < count:
        is_text = random.random() < 0.5
        for _ in range(random.randint(1, 30)):
            value = b"text " * random.randint(1, 60) if is_text else random.randbytes(300)
            created = batch(
                next_offset,
                random.choice((1, 1, 3, 120)) if is_text else 1,
                codec=random.choice(list(Codec)) if random.random() < 0.1 else Codec.NONE,
                control=random.random() < 0.1,
                timestamp_ms=CREATED_MS + random.randint(-5000, 5000),
                value=value,
            )
            batches.append(created)
            next_offset = created.next_offset
    return batches


@given(batch_lists(), st.lists(st.integers(1, 11)), st.sampled_from([None, *Codec]))
def test_grouping_of_batches_does_not_change_the_segment(batches, cuts, compression):
    builder = new_builder(compression)
    for view, positions in waiting_in(batches, cuts).slices(1 << 30):
        assert builder.extend(view, positions)
    built = builder.finish(SECTIONS)
    assert (joined(built.parts), built.index) == expected(batches, compression)
    assert built.size_bytes == sum(map(len, built.parts))
    assert built.max_timestamp_ms == max(each.max_timestamp_ms for each in batches)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("compression", [None, Codec.SNAPPY, Codec.ZSTD])
def test_compressed_batches_are_taken_out_of_a_run(seed, compression):
    batches = mixed(seed)
    cuts = Random(seed).sample(range(1, len(batches)), 12)
    builder, one_by_one = new_builder(compression), new_builder(compression)
    for view, positions in waiting_in(batches, cuts).slices(1 << 30):
        assert builder.extend(view, positions)
    for each in batches:
        one_by_one.append(each)
    built, other = builder.finish(SECTIONS), one_by_one.finish(SECTIONS)
    assert (joined(built.parts), built.index) == expected(batches, compression)
    assert (joined(other.parts), other.index) == expected(batches, compression)
    assert len(built.parts) < len(other.parts)
    segment.read(KEY, joined(built.parts))


@given(st.data(), batch_lists(), st.lists(st.integers(1, 11)))
def test_unrolled_slices_are_limited_to_the_segment_size(data, batches, cuts):
    """Also where the last segment has ended within a run."""
    first = data.draw(st.integers(0, len(batches) - 1))
    sizes = list(accumulate(map(len, batches[first:])))
    bytes_max = data.draw(
        st.sampled_from(sizes).flatmap(lambda size: st.sampled_from((size - 1, size, size + 1)))
    )
    waiting = waiting_in(batches, cuts, batches[first].base_offset)
    fitting = max(sum(size <= bytes_max for size in sizes), 1)
    result = [bytes(each.buffer) for each in waiting.batches(bytes_max)]
    assert result == [bytes(each.buffer) for each in batches[first : first + fitting]]


def test_unchanged_batches_are_one_part_without_a_copy():
    run = BatchRun.from_batches(mixed(1))
    builder = new_builder(None)
    assert builder.extend(run.view, run.positions)
    (part,) = builder.finish().parts[1:-1]
    assert part == run.view
    assert part.obj is run.view.obj


def test_extend_stops_before_the_batch_that_exceeds_a_limit():
    batches = [batch(offset) for offset in range(3)]
    run = BatchRun.from_batches(batches)
    builder = new_builder(None)
    room_bytes = 2 * len(batches[0])
    builder.size_bytes = segment.SEGMENT_BYTES_MAX - room_bytes
    assert not builder.extend(run.view, run.positions)
    assert (builder.next_offset, builder.count) == (2, 2)
    assert builder.size_bytes == segment.SEGMENT_BYTES_MAX
    assert builder.finish().parts[1] == run.view[:room_bytes]


def test_extend_asserts_positions_of_batches():
    run = BatchRun.from_batches([batch(offset) for offset in range(2)])
    for positions in ([0, len(run)], [0, run.positions[1] - 1], [1, run.positions[1]]):
        with pytest.raises(AssertionError):
            new_builder(None).extend(run.view, positions)
