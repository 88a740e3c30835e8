"""Clients in other languages log in over TLS: franz-go and KafkaJS by SCRAM, others by PLAIN."""

import pytest

from services.client_program import FOREIGN_CLIENTS, ClientError, client_program, missing_for
from services.secured_broker import password_of

pytestmark = pytest.mark.timeout(600)  # The first run builds the programs.

TOPIC_AUTHORIZATION_FAILED = 29


@pytest.fixture(params=FOREIGN_CLIENTS)
def client(request, secured):
    if missing := missing_for(request.param):
        pytest.skip(f"no {missing} here")
    credentials = {
        "CLIENT_USER": "alice",
        "CLIENT_PASSWORD": password_of("alice"),
        "CLIENT_CA_FILE": str(secured.certificates.authority),
    }
    with client_program(request.param, secured.plain("alice").address, credentials) as running:
        yield running


def record(value):
    return {"key": None, "value": value, "headers": [], "timestamp_ms": 1_700_000_000_000}


def test_client_uses_its_own_topics(client, own_topic):
    client.do("create", topic=own_topic, partitions=1)
    records = [record("one"), record("two")]
    producer = {"codec": "none", "acks": "all"}
    assert client.do("produce", topic=own_topic, records=records, producer=producer) == [0, 1]
    assert own_topic in client.do("topics")


def test_topics_of_others_are_denied_and_not_listed(client, own_topic):
    foreign = own_topic.replace("alice", "bob")
    with pytest.raises(ClientError) as error:
        client.do("create", topic=foreign, partitions=1)
    assert error.value.code == TOPIC_AUTHORIZATION_FAILED
    assert not [name for name in client.do("topics") if not name.startswith("alice-")]
