"""Quantiles of buckets, at the edges."""

from math import inf

import pytest

from kafscale.admin.cluster.quantiles import quantile


@pytest.mark.parametrize("buckets", [(), ((1.0, 0), (inf, 0))])
def test_of_nothing_there_is_no_quantile(buckets):
    assert quantile(0.99, buckets) is None


def test_what_is_above_all_bounds_counts_as_the_last_of_them():
    assert quantile(0.99, ((0.1, 0), (5.0, 1), (inf, 100))) == 5.0


def test_a_bucket_that_is_empty_is_passed_over():
    assert quantile(0.5, ((1.0, 0), (2.0, 0), (4.0, 2), (inf, 2))) == 3.0


def test_it_never_falls_as_the_share_grows():
    buckets = ((0.01, 3), (0.05, 3), (0.1, 40), (1.0, 90), (inf, 95))
    found = [quantile(share / 100, buckets) for share in range(1, 101)]
    assert found == sorted(found)
