"""The certificates and settings of `kafscale cert dev` work for our commands and other clients."""

import json

import pytest

from services import java
from services.shell import Shell

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certs")
    arguments = ("cert", "dev", "--out", str(directory), "--user", "alice", "-o", "json")
    return json.loads(Shell("")(*arguments))


@pytest.fixture
def broker(start_broker, generated):
    """A broker with the suggested settings, except the port."""
    settings = dict(map(_as_argument, generated["brokerSettings"].items()))
    return start_broker(**settings)


def _as_argument(setting):
    name, value = setting
    return name.removeprefix("KAFSCALE_").lower(), value


def test_generated_settings_work_with_our_commands(broker, generated):
    settings = dict(map(_as_argument, generated["users"][0]["settings"].items()))
    settings["control_servers"] = broker.control_address
    shell = Shell(broker.address, **settings)
    shell("topic", "create", "orders")
    assert "orders" in shell("topic", "list")
    assert "is the controller" in shell("cluster", "status")


@pytest.mark.long
@pytest.mark.skipif(not java.is_available(), reason="no Java here")
def test_generated_properties_work_with_java(broker, generated, tmp_path):
    file = tmp_path / "client.properties"
    properties = generated["users"][0]["javaProperties"]
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    tool = "org.apache.kafka.tools.TopicCommand"
    address = ("--bootstrap-server", broker.address, "--command-config", str(file))
    java.run(tool, *address, "--create", "--topic", "orders")
    assert "orders" in java.run(tool, *address, "--list")


def test_generated_properties_work_with_librdkafka(broker, generated):
    from confluent_kafka.admin import AdminClient

    properties = generated["users"][0]["librdkafkaProperties"]
    admin = AdminClient({"bootstrap.servers": broker.address} | properties)
    assert len(admin.list_topics(timeout=20).brokers) == 1
