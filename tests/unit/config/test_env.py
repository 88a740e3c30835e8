"""Environment variables: known, unknown, and several for one setting."""

import pytest

from kafscale.config import SETTINGS, Config, load
from kafscale.errors import ConfigError

EVERYWHERE = Config().broker.host


def test_setting_is_set_by_each_of_its_variables():
    for setting in SETTINGS:
        shown = setting.type.show(setting.default)
        for variable in setting.variables:
            config = load({variable: shown})
            assert config.origins == {setting.path: variable}
            assert setting.value(config) == setting.default


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KAFSCALE_LOG_LEVL", "did you mean KAFSCALE_LOG_LEVEL?"),
        ("KAFSCALE_STORAGE_SEGMENT_BYTES", "did you mean KAFSCALE_SEGMENT_BYTES?"),
        ("KAFSCALE_LOG_FORMAT", "did you mean KAFSCALE_LOGGING_FORMAT?"),
        ("KAFSCALE_QUUX", "`kafscale config show` lists all settings"),
        ("KAFSCALE_", "`kafscale config show` lists all settings"),
    ],
)
def test_unknown_variable_is_rejected_with_a_suggestion(name, hint):
    with pytest.raises(ConfigError) as refused:
        load({name: "hunter2"})
    assert str(refused.value) == f"unknown variable {name}: {hint}"


def test_foreign_variables_are_ignored():
    assert load({"KAFKA_PORT": "x", "kafscale_broker_port": "x"}).origins == {}


def test_cache_bytes_override_cache_size():
    config = load({"KAFSCALE_CACHE_SIZE": "2Gi", "KAFSCALE_CACHE_BYTES": "1048576"})
    assert config.cache.segment_cache_bytes == 1048576
    assert config.origin("cache.segmentCacheSize") == "KAFSCALE_CACHE_BYTES"
    assert load({"KAFSCALE_CACHE_SIZE": "3Gi"}).cache.segment_cache_bytes == 3 * 1024**3


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("localhost:1001", "localhost", 1001),
        (":1001", EVERYWHERE, 1001),
        ("[::1]:1001", "::1", 1001),
        ("10.0.0.7:0", "10.0.0.7", 0),
    ],
)
def test_address_sets_host_and_port(address, host, port):
    broker = load({"KAFSCALE_METRICS_ADDR": address}).broker
    assert (broker.metrics_host, broker.metrics_port) == (host, port)
    assert (broker.host, broker.port) == (EVERYWHERE, 9092)
    broker = load({"KAFSCALE_BROKER_ADDR": address}).broker
    assert (broker.host, broker.port) == (host, port)
    broker = load({"KAFSCALE_CONTROL_ADDR": address}).broker
    assert (broker.control_host, broker.control_port) == (host, port)


def test_port_variable_overrides_address():
    broker = load({"KAFSCALE_BROKER_PORT": "1002", "KAFSCALE_BROKER_ADDR": "here:1001"}).broker
    assert (broker.host, broker.port) == ("here", 1002)


@pytest.mark.parametrize("address", ["", "localhost", "9092", "a:b", "::1:9092", "http://a:1"])
def test_invalid_address_is_rejected(address):
    with pytest.raises(
        ConfigError, match=r"^KAFSCALE_BROKER_ADDR: .* expected host:port or :port$"
    ):
        load({"KAFSCALE_BROKER_ADDR": address})


def test_invalid_port_in_an_address_names_the_variable():
    with pytest.raises(
        ConfigError, match=r"broker.port \(KAFSCALE_BROKER_ADDR\): \"70000\" is above"
    ):
        load({"KAFSCALE_BROKER_ADDR": "here:70000"})


def test_kubernetes_service_variables_are_ignored():
    """A Service named kafscale-broker puts these into every pod of its namespace."""
    environ = {
        "KAFSCALE_BROKER_SERVICE_HOST": "10.0.0.1",
        "KAFSCALE_BROKER_SERVICE_PORT": "9092",
        "KAFSCALE_BROKER_SERVICE_PORT_KAFKA": "9092",
        "KAFSCALE_BROKER_PORT": "tcp://10.0.0.1:9092",
        "KAFSCALE_BROKER_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "KAFSCALE_BROKER_PORT_9092_TCP_PROTO": "tcp",
        "KAFSCALE_BROKER_PORT_9092_TCP_PORT": "9092",
        "KAFSCALE_BROKER_PORT_9092_TCP_ADDR": "10.0.0.1",
    }
    assert load(environ).origins == {}
