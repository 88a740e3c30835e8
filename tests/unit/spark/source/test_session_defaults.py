"""Tests of the S3 settings of a session: precedence and secrecy."""

import pickle

import pytest

from kafscale.errors import InvalidRequestError
from kafscale.spark.source.session_defaults import SessionDefaults

SECRETS = {
    "spark.hadoop.fs.s3a.access.key": "AKIA-ALL",
    "spark.hadoop.fs.s3a.secret.key": "secret-all",
    "spark.hadoop.fs.s3a.session.token": "token-all",
}


def bucket(settings, path="s3://records/production", **options):
    result = SessionDefaults.of(settings).resolve_location({"path": path, **options}).bucket
    assert result is not None
    return result


def keys(found):
    return found.access_key, found.secret_key, found.session_token


def test_s3a_settings_are_used():
    result = bucket(
        SECRETS
        | {
            "spark.hadoop.fs.s3a.endpoint": "http://localhost:9000",
            "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.assumed.role.arn": "arn:aws:iam::1:role/reader",
            "spark.app.name": "other",
        }
    )
    assert keys(result) == ("AKIA-ALL", "secret-all", "token-all")
    assert result.endpoint == "http://localhost:9000"
    assert result.region == "eu-west-1"
    assert result.path_style
    assert result.role_arn == "arn:aws:iam::1:role/reader"


def test_s3a_settings_of_a_bucket_take_precedence():
    settings = SECRETS | {
        "spark.hadoop.fs.s3a.bucket.records.access.key": "AKIA-ONE",
        "spark.hadoop.fs.s3a.bucket.records.secret.key": "secret-one",
    }
    assert keys(bucket(settings)) == ("AKIA-ONE", "secret-one", "token-all")
    assert keys(bucket(settings, "s3a://other/x"))[0] == "AKIA-ALL"


@pytest.mark.parametrize(
    ("encrypted", "endpoint"), [({}, "https://s3.test"), ("false", "http://s3.test")]
)
def test_endpoint_without_a_scheme(encrypted, endpoint):
    settings = {"fs.s3a.endpoint": "s3.test"}
    if encrypted:
        settings["fs.s3a.connection.ssl.enabled"] = encrypted
    assert bucket(settings).endpoint == endpoint


def test_precedence_of_options_and_settings():
    settings = SECRETS | {
        "spark.hadoop.fs.s3a.endpoint": "http://s3a.test",
        "spark.kafscale.s3.endpoint": "http://own.test",
        "spark.kafscale.s3.accessKey": "AKIA-OWN",
        "spark.kafscale.s3.secretKey": "secret-own",
    }
    assert bucket(settings).endpoint == "http://own.test"
    assert keys(bucket(settings))[:2] == ("AKIA-OWN", "secret-own")
    assert (
        bucket(settings, **{"s3.endpoint": "http://option.test"}).endpoint == "http://option.test"
    )


@pytest.mark.parametrize("option", ["s3.profile", "s3.credentialSource", "s3.credentialsFile"])
def test_credential_sources_override_s3a_credentials(option):
    assert keys(bucket(SECRETS, **{option: "file"})) == ("", "", "")


def test_default_path(tmp_path):
    (tmp_path / "objects").mkdir()
    settings = {"spark.kafscale.path": str(tmp_path), "spark.kafscale.namespace": "production"}
    assert SessionDefaults.of(settings).resolve_location({}).namespace == "production"
    assert bucket(settings).short_name == "records"
    assert (
        SessionDefaults.of(settings).resolve_location({"path": "s3://a/other"}).namespace == "other"
    )
    with pytest.raises(InvalidRequestError, match="path is missing"):
        SessionDefaults().resolve_location({})


def test_unknown_settings_are_rejected_without_their_value():
    with pytest.raises(
        InvalidRequestError, match=r"spark.kafscale.s3.secretkey.*s3.secretKey"
    ) as raised:
        SessionDefaults.of({"spark.kafscale.s3.secretkey": "hidden"})
    assert "hidden" not in str(raised.value)


def test_credentials_are_pickled_but_not_shown():
    settings = SECRETS | {"spark.kafscale.s3.secretKey": "secret-own"}
    defaults = SessionDefaults.of(settings)
    location = defaults.resolve_location({"path": "s3://records/production"})
    for text in (repr(defaults), str(location), repr(location)):
        assert "AKIA" not in text
        assert "secret-" not in text
        assert "token-" not in text
    assert pickle.loads(pickle.dumps(defaults)) == defaults  # noqa: S301 - our own bytes.
