"""docs/protocol-compatibility.md names the client versions that the tests use."""

import json
import re
from pathlib import Path

import confluent_kafka
import pytest

from services.java import KAFKA
from services.old_clients import OLD_CLIENTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "protocol-compatibility.md").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
CLIENTS = ROOT / "tests" / "e2e" / "clients"


def locked(package):
    [version] = re.findall(rf"^{package}==(\S+)", LOCK, re.MULTILINE)
    return version


def of_go(module):
    text = (CLIENTS / "go" / "go.mod").read_text()
    [version] = re.findall(rf"^\t{re.escape(module)} v(\S+)$", text, re.MULTILINE)
    return version


def of_node(package):
    return json.loads((CLIENTS / "node" / "package.json").read_text())["dependencies"][package]


TESTED = {
    "librdkafka, through confluent-kafka": (
        f"{confluent_kafka.libversion()[0]}, {locked('confluent-kafka')}"
    ),
    "aiokafka": locked("aiokafka"),
    "kafka-python": locked("kafka-python"),
    "Apache Kafka's own tools": KAFKA,
    "franz-go": of_go("github.com/twmb/franz-go"),
    "Sarama": of_go("github.com/IBM/sarama"),
    "segmentio/kafka-go": of_go("github.com/segmentio/kafka-go"),
    "KafkaJS": of_node("kafkajs"),
    "Spark's own Kafka connector": locked("pyspark"),
}


@pytest.mark.parametrize("client", TESTED)
def test_page_has_every_client_with_its_version(client):
    [version] = re.findall(rf"^\| {re.escape(client)}[^|]* \| ([^|]+) \|", PAGE, re.MULTILINE)
    assert version == TESTED[client]


@pytest.mark.parametrize("client", OLD_CLIENTS)
def test_page_names_the_old_clients(client):
    assert client.split()[1] in PAGE
