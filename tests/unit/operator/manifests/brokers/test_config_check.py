"""Settings that brokers would refuse, or that would part them from what the operator keeps."""

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


def test_what_is_right_has_no_problems():
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
def test_the_loader_of_brokers_is_asked(settings, expected):
    [problem] = problems(settings)
    assert expected in problem


def test_a_field_is_judged_like_the_setting_that_it_is():
    [problem] = problems(config={"cacheSize": "9999Ti"})
    assert "9999Ti" in problem


def test_an_etcd_that_contradicts_itself_is_found():
    etcd = EtcdAccess(endpoints=("http://a:2379",), tls_secret="tls")  # noqa: S106 - its name.
    [problem] = problems(etcd=etcd)
    assert "make them agree" in problem


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("broker.id", "each broker has its own"),
        ("broker.rack", "each broker has its own"),
        ("broker.advertisedHost", "each broker has its own"),
        ("broker.port", "Services and probes"),
        ("broker.metricsPort", "Services and probes"),
        ("s3.namespace", "the same bucket"),
        ("s3.manageLifecycle", "the operator does this"),
        ("etcd.endpoints", "the same etcd"),
    ],
)
def test_what_the_operator_says_is_not_said_again(path, reason):
    group, _, key = path.partition(".")
    [found] = [
        each
        for each in problems({group: {key: "1"}})
        if each.startswith(f"spec.config.settings.{path}: ")
    ]
    assert reason in found


def test_a_secret_has_no_place_in_a_config_map():
    [problem] = problems({"tls": {"keyPassword": "sesame"}})
    assert "KAFSCALE_TLS_KEY_PASSWORD" in problem
    assert "spec.brokers.envSecrets" in problem
    assert "sesame" not in problem


def test_a_drain_has_to_fit_into_the_grace():
    [problem] = problems({"broker": {"drainTimeoutSec": 60}})
    assert "terminationGracePeriodSeconds, which is 60" in problem
    settings = {"broker": {"drainTimeoutSec": 60}}
    assert problems(settings, brokers={"terminationGracePeriodSeconds": 61}) == []


def test_a_start_has_to_fit_into_the_probe():
    [problem] = problems({"broker": {"startupTimeoutSec": "5m"}})
    assert "broker.startupTimeoutSec is 300" in problem


def test_one_listener_is_where_probes_look():
    [problem] = problems({"broker": {"listeners": "PLAINTEXT://:9094"}})
    assert "has no port 9092" in problem
    assert problems({"broker": {"listeners": ["PLAINTEXT://:9092"]}}) == []


def test_keys_and_a_role_are_not_both_meant():
    [problem] = problems(s3={"credentialsSecretRef": "keys", "credentialSource": "iam"})
    assert "spec.s3.credentialSource is iam" in problem
    assert problems(s3={"credentialSource": "iam"}) == []
