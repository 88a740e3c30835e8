"""Operations on `Partitions` match those on sets of pairs."""

from hypothesis import given
from hypothesis import strategies as some

from kafscale.groups.consumer.partition_sets import (
    difference,
    frozen,
    intersection,
    is_overlapping,
    is_within,
    union,
)

partitions = some.dictionaries(
    some.sampled_from([b"x", b"y", b"z"]), some.frozensets(some.integers(0, 3), min_size=1)
)


def pairs(partitions):
    assert all(partitions.values()), "no topic has an empty set"
    return {(topic, number) for topic, numbers in partitions.items() for number in numbers}


@given(partitions, partitions)
def test_operations_match_sets_of_pairs(one, other):
    assert pairs(intersection(one, other)) == pairs(one) & pairs(other)
    assert pairs(difference(one, other)) == pairs(one) - pairs(other)
    assert pairs(union(one, other)) == pairs(one) | pairs(other)
    assert is_overlapping(one, other) == bool(pairs(one) & pairs(other))
    assert is_within(one, other) == (pairs(one) <= pairs(other))


def test_topic_without_partitions_is_left_out():
    assert frozen({b"x": [1, 0, 1], b"y": []}) == {b"x": {0, 1}}
