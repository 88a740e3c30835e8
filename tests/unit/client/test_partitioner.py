"""The partitioner chooses the same partitions as Kafka's Java producer."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as reference_murmur2

from kafscale.client.partitioner import Partitioner, murmur2


@given(st.binary(max_size=64))
def test_murmur2_equals_that_of_kafka_python(data):
    assert murmur2(data) == reference_murmur2(data)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_has_the_values_of_kafka_tests(key, hashed):
    assert murmur2(key) == hashed % 2**32


@given(st.binary(max_size=20), st.integers(1, 50), st.integers())
def test_key_always_has_the_same_partition(key, partition_count, seed):
    partitioner = Partitioner(partition_count, Random(seed))
    chosen = partitioner.choose(key)
    assert 0 <= chosen < partition_count
    partitioner.batch_filled(chosen)
    assert (
        partitioner.choose(key)
        == chosen
        == (reference_murmur2(key) & 0x7FFF_FFFF) % partition_count
    )


def test_sticky_partition_changes_after_a_full_batch():
    partitioner = Partitioner(3, Random(1))
    first = partitioner.choose(None)
    partitioner.batch_filled((first + 1) % 3)
    assert partitioner.choose(None) == first
    seen = set()
    for _ in range(20):
        before = partitioner.choose(None)
        partitioner.batch_filled(before)
        assert partitioner.choose(None) != before
        seen.add(before)
    assert seen == {0, 1, 2}


def test_single_partition_is_always_chosen():
    partitioner = Partitioner(1, Random(1))
    partitioner.batch_filled(0)
    assert partitioner.choose(None) == partitioner.choose(b"key") == 0
