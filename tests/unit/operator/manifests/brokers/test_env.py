"""Tests of a broker's environment variables, and of the Secrets in it."""

from kafscale.config import VARIABLES
from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.names import EtcdAccess
from unit.operator.manifests.clusters import PLATFORM, case, cluster

ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def test_variables_are_known_settings():
    built = config_map.env_variables(*_everything())
    assert {each["name"] for each in built} - {"POD_NAME"} <= set(VARIABLES)


def test_pod_name_comes_before_its_uses():
    first, *others = config_map.env_variables(*_everything())
    assert first["name"] == "POD_NAME"
    assert sum("$(POD_NAME)" in each.get("value", "") for each in others) == 2


def test_sample_has_the_variables_of_its_fields():
    built, etcd = case("production")
    values = {
        each["name"]: each.get("value") for each in config_map.env_variables(built, PLATFORM, etcd)
    }
    assert values["KAFSCALE_S3_BUCKET"] == "kafscale-production-data"
    assert values["KAFSCALE_S3_REGION"] == "eu-west-1"
    assert values["KAFSCALE_ETCD_ENDPOINTS"] == (
        "kafscale-etcd-0.kafscale-etcd:2379,"
        "kafscale-etcd-1.kafscale-etcd:2379,"
        "kafscale-etcd-2.kafscale-etcd:2379"
    )
    assert values["KAFSCALE_SEGMENT_BYTES"] == "104857600"
    assert values["KAFSCALE_FLUSH_INTERVAL_MS"] == "500"
    assert values["KAFSCALE_CACHE_SIZE"] == "4Gi"


def test_settings_override_variables_of_fields():
    built = cluster(
        {
            "brokers": {},
            "s3": {"bucket": "records"},
            "config": {"settings": {"cache": {"segmentCacheSize": "512Mi"}}},
        }
    )
    values = {
        each["name"]: each.get("value") for each in config_map.env_variables(built, PLATFORM, ETCD)
    }
    assert values["KAFSCALE_CACHE_SIZE"] == "512Mi"


def test_secrets_are_named_once_and_in_order():
    brokers = {"envSecrets": ["users", "keys"]}
    built = cluster({"brokers": brokers, "s3": {"bucket": "records", "credentialsSecret": "keys"}})
    etcd = EtcdAccess(endpoints=("a:1",), credentials_secret="etcd")  # noqa: S106 - its name.
    assert config_map.env_secrets(built, etcd) == ["keys", "etcd", "users"]
    assert config_map.env_sources(built, etcd)[0] == {"secretRef": {"name": "keys"}}


def test_credentials_secret_ref_wins_over_its_alias():
    s3 = {"bucket": "records", "credentialsSecret": "old", "credentialsSecretRef": "new"}
    assert config_map.env_secrets(cluster({"brokers": {}, "s3": s3}), ETCD) == ["new"]


def test_keys_are_left_out_with_a_role():
    s3 = {"bucket": "records", "credentialsSecret": "keys", "credentialSource": "iam"}
    assert config_map.env_secrets(cluster({"brokers": {}, "s3": s3}), ETCD) == []


def _everything():
    built, etcd = case("everything")
    return built, PLATFORM, etcd
