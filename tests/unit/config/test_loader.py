"""Precedence of defaults, file and environment, variables, and error messages."""

import pytest
import yaml

from kafscale.config import SETTINGS, Config, load
from kafscale.errors import ConfigError
from kafscale.net.address import ANY_ADDRESS

FULL_FILE = """
broker:
  id: ""                          # from the host name
  host: ""
  port: 9092
  metricsPort: 9093
network:
  maxConnections: 10000
  maxRequestSize: 104857600
  socketSendBuffer: 1048576
  socketReceiveBuffer: 1048576
  connectionTimeout: 30s
  requestTimeout: 60s
s3:
  bucket: ""
  region: "us-east-1"
  endpoint: ""
  pathStyle:
  partSize: 5242880
  concurrency: 5
  maxRetries: 3
  maxIdleConnections: 100
  idleTimeout: 90s
  serverSideEncryption: bucket
etcd:
  endpoints: []
  dialTimeout: 5s
  requestTimeout: 10s
  username: ""
  password: ""
  tls: {enabled: false, certFile: "", keyFile: "", caFile: ""}
storage:
  segmentBytes: 104857600
  indexIntervalBytes: 4096
  flushIntervalMs: 500
  flushMessages: 10000
cache:
  segmentCacheSize: 2Gi
  indexCacheSize: 256Mi
  readAheadSegments: 3
  readAheadBytes: 12Mi
consumer:
  sessionTimeoutMs: 30000
  heartbeatIntervalMs: 3000
  rebalanceTimeoutMs: 60000
  maxPollIntervalMs: 300000
compression:
  type: snappy
logging:
  level: info
  format: json
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="broker.yaml"):
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


def problems(environ, file=None):
    with pytest.raises(ConfigError) as refused:
        load(environ, file)
    return str(refused.value).splitlines()


def test_no_settings_is_the_embedded_default(tmp_path):
    config = load({"PATH": "/bin", "HOME": "/"}, default_file=tmp_path / "absent.yaml")
    assert config == Config()
    assert config.origins == {}
    assert config.origin("broker.port") == "default"


def test_file_with_defaults_changes_nothing(write):
    assert load({}, write(FULL_FILE)) == Config()


def test_environment_overrides_file_overrides_default(write):
    file = write("broker:\n  port: 1001\n  host: filehost\nlogging:\n  level: debug\n")
    config = load({"KAFSCALE_BROKER_PORT": "1002"}, file)
    assert (config.broker.port, config.broker.host, config.broker.metrics_port) == (
        1002,
        "filehost",
        9093,
    )
    assert config.logging.level == "debug"
    assert config.origin("broker.port") == "KAFSCALE_BROKER_PORT"
    assert config.origin("broker.host") == f"{file}:3"
    assert config.origin("broker.metricsPort") == "default"


def test_options_override_the_environment(write):
    environ = {"KAFSCALE_BROKER_PORT": "1000", "KAFSCALE_S3_NAMESPACE": "one"}
    options = {"--listen": "[::1]:2000", "--namespace": "two", "--tls-cert-file": "a.pem"}
    config = load(environ, write("broker: {host: 10.0.0.1}\n"), options=options)
    assert (config.broker.host, config.broker.port) == ("::1", 2000)
    assert (config.s3.namespace, config.tls.cert_file) == ("two", ("a.pem",))
    assert config.origin("broker.port") == "--listen"
    assert load({}, options={"--listen": ":2000"}).broker.host == ANY_ADDRESS


def test_value_has_the_same_syntax_in_file_and_environment(write):
    file = write(
        "s3: {bucket: records}\netcd:\n  endpoints: ['a:2379', 'b:2379']\n  tls: {enabled: no}"
    )
    environ = {
        "KAFSCALE_S3_BUCKET": "records",
        "KAFSCALE_ETCD_ENDPOINTS": "a:2379, b:2379",
        "KAFSCALE_ETCD_TLS_ENABLED": "no",
    }
    assert load({}, file) == load(environ)
    assert load(environ).etcd.endpoints == ("a:2379", "b:2379")


def test_yaml_scalars_stay_text(write):
    config = load({}, write("s3: {bucket: '007', namespace: on, region: no}\nbroker: {id: 007}"))
    assert (config.s3.bucket, config.s3.namespace, config.s3.region) == ("007", "on", "no")
    assert config.broker.id == 7


def test_named_file_must_exist(tmp_path, write):
    absent = tmp_path / "absent.yaml"
    assert problems({}, absent) == [f"{absent}: cannot be read: No such file or directory"]
    assert problems({"KAFSCALE_CONFIG_FILE": str(absent)})[0].startswith(
        f"{absent}: cannot be read"
    )

    file = write("broker: {port: 1001}")
    assert load({}, default_file=file).broker.port == 1001
    assert load({"KAFSCALE_CONFIG_FILE": str(file)}).broker.port == 1001


def test_file_argument_overrides_the_variable(write):
    argument = write("broker: {port: 1001}", "one.yaml")
    other = write("broker: {port: 1002}", "two.yaml")
    assert (
        load({"KAFSCALE_CONFIG_FILE": str(other)}, argument, default_file=other).broker.port == 1001
    )


def test_all_problems_are_reported_at_once(write):
    file = write("storage:\n  segmntBytes: 1\n  flushIntervalMs: fast\n")
    assert problems({"KAFSCALE_S3_PATH_STYL": "1", "KAFSCALE_LOG_LEVEL": "loud"}, file) == [
        f"unknown setting storage.segmntBytes ({file}:2): did you mean storage.segmentBytes?",
        "unknown variable KAFSCALE_S3_PATH_STYL: did you mean KAFSCALE_S3_PATH_STYLE?",
        (
            f'storage.flushIntervalMs ({file}:3): "fast" is not a duration; '
            "expected a number of milliseconds or a duration with its unit, from 1ms to 1h"
        ),
        (
            'logging.level (KAFSCALE_LOG_LEVEL): "loud" is not one of them; '
            "expected one of debug, info, warn, error"
        ),
    ]


def test_overridden_value_is_validated(write):
    assert len(problems({"KAFSCALE_CACHE_BYTES": "1073741824", "KAFSCALE_CACHE_SIZE": "much"})) == 1
    assert len(problems({"KAFSCALE_BROKER_PORT": "1"}, write("broker: {port: many}"))) == 1


@pytest.mark.parametrize(
    ("variable", "value"),
    [("KAFSCALE_S3_SECRET_KEY", "hunter2\n"), ("KAFSCALE_ETCD_ENDPOINTS", "http://me:hunter2@e:1")],
)
def test_errors_contain_no_secret(variable, value):
    [problem] = problems({variable: value})
    assert "hunter2" not in problem
    assert "********" in problem


def test_errors_contain_no_secret_of_the_file(write):
    [problem] = problems({}, write("etcd:\n  password: [hunter2]\n"))
    assert problem.startswith("etcd.password (")
    assert "hunter2" not in problem


def test_segment_size_of_2_gib_is_rejected():
    assert load({"KAFSCALE_SEGMENT_BYTES": "2147483647"}).storage.segment_bytes == 2**31 - 1
    [problem] = problems({"KAFSCALE_SEGMENT_BYTES": "2Gi"})
    assert '"2Gi" is above the maximum of 2147483647' in problem


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_invalid_port_is_rejected(port):
    assert len(problems({"KAFSCALE_BROKER_PORT": port})) == 1


def test_effective_configuration_round_trips_as_a_file(write):
    environ = {
        "KAFSCALE_S3_BUCKET": "records",
        "KAFSCALE_ETCD_ENDPOINTS": "a:2379,b:2379",
        "KAFSCALE_CACHE_SIZE": "100MB",
        "KAFSCALE_NETWORK_REQUEST_TIMEOUT": "1m30s",
        "KAFSCALE_STARTUP_TIMEOUT_SEC": "2m",
        "KAFSCALE_BROKER_ID": "0",
    }
    config = load(environ)
    assert load({}, write(yaml.safe_dump(config.effective()))) == config


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
        (":1001", ANY_ADDRESS, 1001),
        ("[::1]:1001", "::1", 1001),
        ("10.0.0.7:0", "10.0.0.7", 0),
    ],
)
def test_address_sets_host_and_port(address, host, port):
    broker = load({"KAFSCALE_METRICS_ADDR": address}).broker
    assert (broker.metrics_host, broker.metrics_port) == (host, port)
    assert (broker.host, broker.port) == ("", 9092)
    broker = load({"KAFSCALE_BROKER_ADDR": address}).broker
    assert (broker.host, broker.port) == (host, port)
    broker = load({"KAFSCALE_CONTROL_ADDR": address}).broker
    assert (broker.control_host, broker.control_port) == (host, port)


@pytest.mark.parametrize(
    ("environ", "host"),
    [
        ({}, "127.0.0.1"),
        ({"KAFSCALE_S3_BUCKET": "records"}, "127.0.0.1"),
        ({"KAFSCALE_S3_BUCKET": "records", "KAFSCALE_ETCD_ENDPOINTS": "etcd:2379"}, ANY_ADDRESS),
        ({"KAFSCALE_BROKER_ADDR": ":9092"}, ANY_ADDRESS),
        ({"KAFSCALE_BROKER_HOST": "10.0.0.7"}, "10.0.0.7"),
    ],
)
def test_embedded_broker_listens_on_this_machine_only_by_default(environ, host):
    config = load(environ)
    assert config.bind_address(config.broker.host) == host
    assert config.broker.control_host == "127.0.0.1"


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
