"""The variables of a broker, and the Secrets that a change of needs a restart for."""

from kafscale.config import VARIABLES
from kafscale.operator.manifests.brokers import env
from kafscale.operator.manifests.names import EtcdAccess
from unit.operator.manifests.clusters import PLATFORM, case, cluster

ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def test_every_variable_is_one_that_brokers_know():
    made = env.variables(*_everything())
    assert {each["name"] for each in made} - {"POD_NAME"} <= set(VARIABLES)


def test_the_name_of_the_pod_comes_before_what_is_made_of_it():
    first, *others = env.variables(*_everything())
    assert first["name"] == "POD_NAME"
    assert sum("$(POD_NAME)" in each.get("value", "") for each in others) == 2


def test_the_sample_has_the_variables_of_its_fields():
    made, etcd = case("production")
    values = {each["name"]: each.get("value") for each in env.variables(made, PLATFORM, etcd)}
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


def test_settings_that_win_over_a_field_win_over_its_variable_too():
    made = cluster(
        {
            "brokers": {},
            "s3": {"bucket": "records"},
            "config": {"settings": {"cache": {"segmentCacheSize": "512Mi"}}},
        }
    )
    values = {each["name"]: each.get("value") for each in env.variables(made, PLATFORM, ETCD)}
    assert values["KAFSCALE_CACHE_SIZE"] == "512Mi"


def test_secrets_are_named_once_and_in_order():
    brokers = {"envSecrets": ["users", "keys"]}
    made = cluster({"brokers": brokers, "s3": {"bucket": "records", "credentialsSecret": "keys"}})
    etcd = EtcdAccess(endpoints=("a:1",), credentials_secret="etcd")  # noqa: S106 - its name.
    assert env.secrets(made, etcd) == ["keys", "etcd", "users"]
    assert env.sources(made, etcd)[0] == {"secretRef": {"name": "keys"}}


def test_credentials_secret_ref_wins_over_its_other_spelling():
    s3 = {"bucket": "records", "credentialsSecret": "old", "credentialsSecretRef": "new"}
    assert env.secrets(cluster({"brokers": {}, "s3": s3}), ETCD) == ["new"]


def test_keys_are_left_out_where_a_role_takes_their_place():
    s3 = {"bucket": "records", "credentialsSecret": "keys", "credentialSource": "iam"}
    assert env.secrets(cluster({"brokers": {}, "s3": s3}), ETCD) == []


def _everything():
    made, etcd = case("everything")
    return made, PLATFORM, etcd
