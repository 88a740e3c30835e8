"""Buckets and regions in specs become parts of host names: they may not lead to another host."""

import msgspec
import pytest

from kafscale.operator.spec.cluster import ClusterSpec


def read(*, s3=None, snapshots=None):
    """A spec with these fields."""
    spec = {"brokers": {}, "s3": {"bucket": "records", **(s3 or {})}}
    return msgspec.convert({**spec, "etcd": {"snapshots": snapshots or {}}}, ClusterSpec)


@pytest.mark.parametrize(
    "bucket", ["records", "a.b-1", "arn:aws:s3:::records", "arn:aws-cn:s3:::records"]
)
def test_names_and_arns_are_buckets(bucket):
    assert read(s3={"bucket": bucket}).s3.bucket == bucket
    assert read(snapshots={"bucket": bucket}).snapshots_s3.bucket == bucket


@pytest.mark.parametrize(
    "bucket",
    [
        "A",
        "a/b",
        "arn:aws:s3:::a#",
        "arn:aws:s3:::169.254.169.254?",
        "arn:x@y",
        "arn:aws:s3:::a\\b",
    ],
)
def test_other_text_is_no_bucket(bucket):
    with pytest.raises(msgspec.ValidationError):
        read(s3={"bucket": bucket})
    with pytest.raises(msgspec.ValidationError):
        read(snapshots={"bucket": bucket})


@pytest.mark.parametrize("region", ["example.com/#", "a.b", "a@b", "a\\b", "x" * 65])
def test_other_text_is_no_region(region):
    assert read(s3={"region": "eu-west-1"}, snapshots={"region": ""}).s3.region == "eu-west-1"
    with pytest.raises(msgspec.ValidationError):
        read(s3={"region": region})
    with pytest.raises(msgspec.ValidationError):
        read(snapshots={"region": region})
