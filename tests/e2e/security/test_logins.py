"""Every client logs in with every mechanism that it supports, and gets its own principal.

The kcat package contains a librdkafka older than 2.6.1, whose SCRAM repeats a nonce.
"""

import pytest

from services import kcat
from services.secured_clients import CLIENTS

pytestmark = pytest.mark.timeout(60)

VALUES = [b"one", b"two", b"three"]
WAYS = {
    "PLAIN": lambda broker: broker.plain("alice"),
    "SCRAM-SHA-256": lambda broker: broker.scram("alice", "SHA-256"),
    "SCRAM-SHA-512": lambda broker: broker.scram("alice"),
    "SCRAM in the clear": lambda broker: broker.inside("alice"),
    "OAUTHBEARER": lambda broker: broker.token("alice"),
    "certificate": lambda broker: broker.certificate("alice"),
}
PAIRS = [
    pytest.param(client, way, id=f"{client.name}, {way}")
    for client in CLIENTS
    for way in WAYS
    if not (client.name == "kcat" and way == "OAUTHBEARER")  # kcat has no OAUTHBEARER tokens here.
]


@pytest.mark.parametrize(("client", "way"), PAIRS)
def test_client_reads_and_writes_its_own_topic(client, way, secured, own_topic):
    if client.name == "kcat" and not kcat.is_available():
        pytest.skip("no kcat here, and no apt to fetch it with")
    login = WAYS[way](secured)
    client.send(login, own_topic, VALUES)
    assert client.read(login, own_topic, len(VALUES)) == VALUES
