"""The variables: names that are known, names that are not, and several that set one setting."""

import pytest

from kafscale.config import SETTINGS, Config, load
from kafscale.errors import ConfigError

EVERYWHERE = Config().broker.host


def test_every_setting_can_be_set_by_each_of_its_variables():
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
def test_an_unknown_variable_is_refused_with_the_nearest_known_one(name, hint):
    with pytest.raises(ConfigError) as refused:
        load({name: "hunter2"})
    assert str(refused.value) == f"unknown variable {name}: {hint}"


def test_variables_of_others_are_none_of_our_business():
    assert load({"KAFKA_PORT": "x", "kafscale_broker_port": "x"}).origins == {}


def test_the_cache_in_bytes_wins_over_the_cache_as_a_quantity():
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
def test_an_address_sets_a_host_and_a_port(address, host, port):
    broker = load({"KAFSCALE_METRICS_ADDR": address}).broker
    assert (broker.metrics_host, broker.metrics_port) == (host, port)
    assert (broker.host, broker.port) == (EVERYWHERE, 9092)
    broker = load({"KAFSCALE_BROKER_ADDR": address}).broker
    assert (broker.host, broker.port) == (host, port)
    broker = load({"KAFSCALE_CONTROL_ADDR": address}).broker
    assert (broker.control_host, broker.control_port) == (host, port)


def test_the_variable_of_the_port_alone_wins_over_an_address():
    broker = load({"KAFSCALE_BROKER_PORT": "1002", "KAFSCALE_BROKER_ADDR": "here:1001"}).broker
    assert (broker.host, broker.port) == ("here", 1002)


@pytest.mark.parametrize("address", ["", "localhost", "9092", "a:b", "::1:9092", "http://a:1"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(
        ConfigError, match=r"^KAFSCALE_BROKER_ADDR: .* expected host:port or :port$"
    ):
        load({"KAFSCALE_BROKER_ADDR": address})


def test_an_address_with_an_impossible_port_names_the_variable():
    with pytest.raises(
        ConfigError, match=r"broker.port \(KAFSCALE_BROKER_ADDR\): \"70000\" is above"
    ):
        load({"KAFSCALE_BROKER_ADDR": "here:70000"})


def test_what_kubernetes_says_about_a_service_is_passed_over():
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
