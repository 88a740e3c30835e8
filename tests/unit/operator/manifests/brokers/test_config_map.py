"""Tests of broker.yaml: its content, precedence, and that a broker loads it."""

import pytest
import yaml

from kafscale.config import load
from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.names import EtcdAccess, Platform
from unit.operator.manifests.clusters import CASES, PLATFORM, PRODUCTION, case, cluster

ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def settings(spec, etcd=ETCD, platform=PLATFORM):
    return config_map.settings(cluster(spec), platform, etcd)


def broker_config(name, tmp_path, pod="x-broker-2"):
    """The configuration of a broker, read as a broker in a pod reads it."""
    built, etcd = case(name)
    file = tmp_path / "broker.yaml"
    file.write_text(config_map.config_map(built, PLATFORM, etcd)["data"]["broker.yaml"])
    environment = {"POD_NAME": pod, "KAFSCALE_BROKER_RACK": ""}
    for each in config_map.env_variables(built, PLATFORM, etcd):
        if "value" in each:
            environment[each["name"]] = each["value"].replace("$(POD_NAME)", pod)
    return load(environment, file)


def test_broker_starts_with_the_sample(tmp_path):
    config = broker_config("production", tmp_path, "production-broker-2")
    assert config.s3.bucket == "kafscale-production-data"
    assert config.s3.region == "eu-west-1"
    assert config.s3.namespace == "kafscale.production"
    assert len(config.etcd.endpoints) == 3
    assert config.storage.segment_bytes == 104_857_600
    assert config.storage.flush_interval_ms == 500
    assert config.cache.segment_cache_bytes == 4 * 1024**3
    assert config.broker.drain_timeout_sec == 50
    assert config.broker.rack == ""
    assert (
        config.broker.advertised_host
        == "production-broker-2.production-broker-headless.kafscale.svc.cluster.local"
    )


def test_listeners_advertise_the_name_of_each_broker(tmp_path):
    config = broker_config("everything", tmp_path)
    assert set(config.broker.advertised_listeners) == {
        "EXTERNAL://x-broker-2.kafka.example.com:9094",
        "INTERNAL://x-broker-2.everything-broker-headless.kafscale.svc.cluster.local:9092",
    }


@pytest.mark.parametrize("name", CASES)
def test_variables_and_file_never_disagree(name, tmp_path):
    built, etcd = case(name)
    settings_text = tmp_path / "broker.yaml"
    text = config_map.config_map(built, PLATFORM, etcd)["data"]["broker.yaml"]
    settings_text.write_text(text)
    from_file, from_both = load({}, settings_text), broker_config(name, tmp_path)
    assert (from_file.s3, from_file.etcd) == (from_both.s3, from_both.etcd)
    assert (from_file.storage, from_file.cache) == (from_both.storage, from_both.cache)


def test_settings_override_fields():
    tree = settings(
        PRODUCTION.replace("cacheSize: 4Gi", "settings: {storage: {segmentBytes: 1Mi}, topics: {}}")
    )
    assert tree["storage"] == {"segmentBytes": "1Mi", "flushIntervalMs": 500}
    assert tree["cache"] == {"segmentCacheSize": "2Gi"}


def test_path_style_is_the_default_for_an_endpoint():
    spec = {"brokers": {}, "s3": {"bucket": "records"}}
    assert settings(spec)["s3"]["pathStyle"] is False
    spec["s3"]["endpoint"] = "http://minio:9000"
    assert settings(spec)["s3"]["pathStyle"] is True
    spec["s3"]["pathStyle"] = False
    assert settings(spec)["s3"]["pathStyle"] is False


def test_brokers_do_not_manage_the_bucket():
    s3 = {"bucket": "records", "createBucket": True, "manageLifecycle": True}
    tree = settings({"brokers": {}, "s3": s3})
    assert (tree["s3"]["createBucket"], tree["s3"]["manageLifecycle"]) == (False, False)


@pytest.mark.parametrize(
    ("etcd", "expected"),
    [
        (EtcdAccess(endpoints=("a:2379",)), {"enabled": False}),
        (EtcdAccess(endpoints=("https://a:2379",)), {"enabled": True}),
        (
            EtcdAccess(endpoints=("a:2379",), tls_secret="etcd-tls"),  # noqa: S106 - its name.
            {
                "enabled": True,
                "caFile": "/etc/kafscale/etcd-tls/ca.crt",
                "certFile": "/etc/kafscale/etcd-tls/tls.crt",
                "keyFile": "/etc/kafscale/etcd-tls/tls.key",
            },
        ),
    ],
)
def test_etcd_tls_settings(etcd, expected):
    assert settings(PRODUCTION, etcd)["etcd"]["tls"] == expected


def test_control_plane_is_for_certificates_of_the_operator_and_of_the_cluster(tmp_path):
    config = broker_config("production", tmp_path)
    assert (config.broker.control_host, config.broker.control_port) == ("0.0.0.0", 9095)  # noqa: S104
    assert config.control.tls.enabled
    service = "production-broker-headless.kafscale.svc.cluster.local"
    assert set(config.control.allowed_subjects) == {
        "kafscale-operator",
        service,
        f"control-client.{service}",
    }


def test_tls_of_the_spec_applies_to_listeners_and_to_commands_in_the_pod():
    spec = {"brokers": {}, "s3": {"bucket": "records"}, "tls": {"enabled": True}}
    tree = settings(spec)
    assert tree["broker"]["securityProtocol"] == "SSL"
    assert tree["tls"]["certFile"] == "/etc/kafscale/listener-tls/tls.crt"
    assert tree["client"]["tls"]["caFile"] == "/etc/kafscale/listener-tls/ca.crt"
    assert config_map.problems(cluster(spec), PLATFORM, ETCD) == []
    with_logins = {"settings": {"broker": {"securityProtocol": "SASL_SSL"}}}
    assert settings({**spec, "config": with_logins})["broker"]["securityProtocol"] == "SASL_SSL"


def test_operator_address_is_set_if_known():
    assert settings(PRODUCTION, platform=Platform())["control"]["operatorAddress"] == ""
    elsewhere = Platform(control_address="operator.kafscale:9094")
    built = settings(PRODUCTION, platform=elsewhere)
    assert built["control"]["operatorAddress"] == "operator.kafscale:9094"


@pytest.mark.parametrize(("grace", "drain"), [(10, 5), (19, 10), (20, 10), (60, 50), (3600, 3590)])
def test_a_drain_ends_before_the_pod_is_killed(grace, drain):
    brokers = {"terminationGracePeriodSeconds": grace}
    tree = settings({"brokers": brokers, "s3": {"bucket": "records"}})
    assert tree["broker"]["drainTimeoutSec"] == drain


def test_checksum_ignores_the_order_of_keys():
    def checksum(settings_text):
        built = cluster(
            {"brokers": {}, "s3": {"bucket": "records"}, "config": {"settings": settings_text}}
        )
        return config_map.checksum(built, PLATFORM, ETCD)

    one = {"logging": {"level": "debug", "format": "text"}, "topics": {"autoCreate": False}}
    same = {"topics": {"autoCreate": False}, "logging": {"format": "text", "level": "debug"}}
    assert checksum(one) == checksum(same)
    assert checksum(one) != checksum({**one, "topics": {"autoCreate": True}})


def test_spec_is_not_modified():
    built, etcd = case("everything")
    before = yaml.safe_dump(built.spec.config.settings)
    config_map.settings(built, PLATFORM, etcd)
    config_map.problems(built, PLATFORM, etcd)
    assert yaml.safe_dump(built.spec.config.settings) == before
