"""Tests of locations: parsing of paths and options, and secrecy."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.read.location import Location
from kafscale.storage.objects.s3.bucket_config import S3Bucket


def test_parse_of_a_bucket_and_namespace():
    parsed = Location.parse("s3://records/production")
    assert (parsed.bucket.name, parsed.namespace) == ("records", "production")
    assert str(parsed) == "s3://records/production"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_parse_accepts_all_s3_schemes(scheme):
    assert str(Location.parse(f"{scheme}://records")) == "s3://records/default"


def test_parse_of_the_namespace_option():
    assert Location.parse("s3://records", {"namespace": "test"}).namespace == "test"
    with pytest.raises(InvalidRequestError, match="namespace"):
        Location.parse("s3://records/production", {"namespace": "test"})


def test_parse_of_the_bucket_options():
    options = {
        "s3.endpoint": "http://localhost:9000",
        "s3.pathStyle": "TRUE",
        "s3.region": "eu-west-1",
        "s3.credentialSource": "file",
        "s3.profile": "spark",
        "s3.credentialsFile": "keys",
        "s3.roleArn": "arn:aws:iam::1:role/r",
        "s3.stsEndpoint": "http://localhost:9001",
    }
    assert options.keys() < Location.OPTIONS
    assert Location.parse("s3://records", options).bucket == S3Bucket(
        name="records",
        endpoint="http://localhost:9000",
        path_style=True,
        region="eu-west-1",
        credential_source="file",
        profile="spark",
        credentials_file="keys",
        role_arn="arn:aws:iam::1:role/r",
        sts_endpoint="http://localhost:9001",
    )


def test_parse_rejects_invalid_booleans():
    with pytest.raises(InvalidRequestError, match=r"s3\.pathStyle.*maybe"):
        Location.parse("s3://records", {"s3.pathStyle": "maybe"})


def test_parse_of_a_data_directory(tmp_path):
    (tmp_path / "objects").mkdir()
    for path in (str(tmp_path), f"file://{tmp_path}", str(tmp_path / "objects")):
        parsed = Location.parse(path)
        assert (parsed.directory, parsed.namespace) == (str(tmp_path / "objects"), "default")
        assert parsed.bucket is None


def test_parse_makes_paths_absolute(tmp_path, monkeypatch):
    (tmp_path / "data" / "objects").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert Location.parse("data").directory == str(tmp_path / "data" / "objects")


@pytest.mark.parametrize("path", ["", "hdfs://a/b", "nowhere"])
def test_parse_rejects_other_paths(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequestError, match="data directory"):
        Location.parse(path)


def test_pickle_contains_credentials_but_repr_does_not():
    bucket = S3Bucket(name="records", access_key="AKIA-known", secret_key="very-secret")  # noqa: S106
    location = Location(namespace="default", bucket=bucket)
    assert pickle.loads(pickle.dumps(location)) == location  # noqa: S301
    assert "secret" not in repr(location)
    assert "AKIA" not in repr(location)


def test_a_directory_can_be_opened_twice(tmp_path):
    (tmp_path / "objects").mkdir()
    location = Location.parse(str(tmp_path))
    with location.open() as one, location.open() as other:
        one.put("default/a", [b"1"])
        other.put("default/b", [b"2"])
        assert [item.key for item in one.list("default/")] == ["default/a", "default/b"]
        assert bytes(other.get("default/a")) == b"1"
