"""Payloads: inflated under a bound, and recompressed with nothing else changed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafscale.errors import BatchTooLargeError
from kafscale.records import BatchView, Codec, Record, build, inflate, iterate, recompress
from unit.records.examples import RECORDS, example, record_lists

every_codec = pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.name)


@every_codec
def test_the_payload_is_the_same_in_every_codec(codec: Codec) -> None:
    assert inflate(example(codec=codec)) == example().payload


@every_codec
def test_the_bound_is_kept(codec: Codec) -> None:
    size = len(example().payload)
    assert len(inflate(example(codec=codec), decompressed_bytes_max=size)) == size
    with pytest.raises(BatchTooLargeError):
        inflate(example(codec=codec), decompressed_bytes_max=size - 1)


@given(
    records=record_lists(),
    before=st.sampled_from(Codec),
    after=st.sampled_from(Codec),
    producer_id=st.integers(-1, 2**63 - 1),
    transactional=st.booleans(),
)
@settings(max_examples=100)
def test_recompressing_changes_the_codec_alone(
    records: list[Record], before: Codec, after: Codec, producer_id: int, transactional: bool
) -> None:
    made = build(
        records,
        codec=before,
        producer_id=producer_id,
        producer_epoch=7,
        base_sequence=8,
        leader_epoch=9,
        transactional=transactional,
    )
    batch = BatchView(recompress(BatchView(made), after))
    batch.validate()
    assert batch.codec is after
    assert list(iterate(batch)) == records
    # All of the header but length, checksum and the codec's three bits.
    for span in (slice(8), slice(12, 17), slice(23, 61)):
        assert batch.buffer[span] == made[span]
    assert batch.attributes & ~7 == BatchView(made).attributes & ~7


def test_the_brokers_timestamps_survive() -> None:
    batch = example()
    batch.stamp(1000, 3)
    batch.stamp_append_time(1_800_000_000_000)
    packed = BatchView(recompress(batch, Codec.SNAPPY))
    packed.validate(from_producer=False)
    assert list(iterate(packed)) == list(iterate(batch))


def test_the_batch_given_is_left_alone() -> None:
    data = bytes(build(RECORDS))
    recompress(BatchView(data), Codec.GZIP)
    assert data == build(RECORDS)
