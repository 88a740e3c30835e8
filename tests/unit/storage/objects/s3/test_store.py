"""Connection options of a bucket; responses are tested in `tests/integration/objects`."""

from dataclasses import replace

import pytest

from kafscale.storage.objects.s3.bucket_config import S3Bucket
from kafscale.storage.objects.s3.store import S3ObjectStore, _address

BUCKET = S3Bucket(name="records", endpoint="https://s3.example.com/")


@pytest.mark.parametrize(
    ("path_style", "address"),
    [(True, "https://s3.example.com"), (False, "https://records.s3.example.com")],
)
def test_bucket_is_in_the_host_or_in_the_path(path_style, address):
    assert _address(replace(BUCKET, path_style=path_style)) == address


def test_secrets_are_not_shown():
    bucket = replace(BUCKET, access_key="AKIA1", secret_key="hidden", session_token="psst")  # noqa: S106
    for shown in (repr(bucket), repr(S3ObjectStore(bucket)._store)):
        for secret in ("AKIA1", "hidden", "psst"):
            assert secret not in shown


def test_plain_http_is_used_only_if_configured():
    assert S3ObjectStore(BUCKET)._store.client_options["allow_http"] in {"false", False}
    plain = replace(BUCKET, endpoint="http://127.0.0.1:9000")
    assert S3ObjectStore(plain)._store.client_options["allow_http"] in {"true", True}
