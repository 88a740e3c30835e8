"""Tests of checking broker settings before a broker starts."""

import pytest

from kafscale.operator.manifests.brokers import config_map
from kafscale.operator.manifests.names import EtcdAccess
from unit.operator.manifests.clusters import PLATFORM, cluster

ETCD = EtcdAccess(endpoints=("etcd-0:2379",))


def problems(settings=None, *, etcd=ETCD, brokers=None, s3=None, config=None):
    spec = {
        "brokers": brokers or {},
        "s3": {"bucket": "records", **(s3 or {})},
        "config": {"settings": settings or {}, **(config or {})},
    }
    return config_map.problems(cluster(spec), PLATFORM, etcd)


def test_valid_settings_have_no_problems():
    assert problems() == []
    assert problems({"logging": {"level": "debug"}, "network": {"maxConnections": 500}}) == []
    assert problems({"topics": None, "broker": {"drainTimeoutSec": 59}}) == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"storage": {"segmentByte": 1}}, "did you mean storage.segmentBytes?"),
        ({"logging": {"level": "loud"}}, "logging.level (broker.yaml:"),
        ({"cache": "2Gi"}, "cache (broker.yaml:"),
        ({"broker": {"listeners": "nonsense"}}, "broker.listeners (broker.yaml:"),
        ({"broker": "nonsense"}, "broker (broker.yaml:"),
        ({"broker": {"securityProtocol": "SSL"}}, "tls.certFile is not set"),
    ],
)
def test_invalid_settings_are_reported_by_the_loader(settings, expected):
    [problem] = problems(settings)
    assert expected in problem


def test_fields_are_checked_like_settings():
    [problem] = problems(config={"cacheSize": "9999Ti"})
    assert "9999Ti" in problem


def test_contradictory_etcd_settings_are_reported():
    etcd = EtcdAccess(endpoints=("http://a:2379",), tls_secret="tls")  # noqa: S106 - its name.
    [problem] = problems(etcd=etcd)
    assert "make them agree" in problem


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("broker.id", "differs per broker"),
        ("broker.rack", "differs per broker"),
        ("broker.advertisedHost", "differs per broker"),
        ("broker.port", "Services and probes"),
        ("broker.metricsPort", "Services and probes"),
        ("s3.namespace", "share a bucket"),
        ("s3.manageLifecycle", "the operator does this"),
        ("etcd.endpoints", "share an etcd"),
    ],
)
def test_settings_managed_by_the_operator_are_rejected(path, reason):
    group, _, key = path.partition(".")
    [problem] = [
        each
        for each in problems({group: {key: "1"}})
        if each.startswith(f"spec.config.settings.{path}: ")
    ]
    assert reason in problem


def test_secrets_are_rejected():
    [problem] = problems({"tls": {"keyPassword": "sesame"}})
    assert "KAFSCALE_TLS_KEY_PASSWORD" in problem
    assert "spec.brokers.envSecrets" in problem
    assert "sesame" not in problem


def test_drain_timeout_must_be_below_the_grace_period():
    [problem] = problems({"broker": {"drainTimeoutSec": 60}})
    assert "terminationGracePeriodSeconds, 60" in problem
    settings = {"broker": {"drainTimeoutSec": 60}}
    assert problems(settings, brokers={"terminationGracePeriodSeconds": 61}) == []


def test_startup_timeout_must_be_below_the_probe():
    [problem] = problems({"broker": {"startupTimeoutSec": "5m"}})
    assert "broker.startupTimeoutSec is 300" in problem


def test_one_listener_must_use_the_probed_port():
    [problem] = problems({"broker": {"listeners": "PLAINTEXT://:9094"}})
    assert "has no port 9092" in problem
    assert problems({"broker": {"listeners": ["PLAINTEXT://:9092"]}}) == []


def test_keys_and_a_role_are_contradictory():
    [problem] = problems(s3={"credentialsSecretRef": "keys", "credentialSource": "iam"})
    assert "spec.s3.credentialSource is iam" in problem
    assert problems(s3={"credentialSource": "iam"}) == []
