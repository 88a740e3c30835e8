"""Every client comes in by every mechanism that it knows, and is who it has shown to be.

In the package of kcat is a librdkafka from before 2.6.1, whose SCRAM repeats a nonce.
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
    if not (client.name == "kcat" and way == "OAUTHBEARER")  # It has no tokens.
]


@pytest.mark.parametrize(("client", "way"), PAIRS)
def test_records_come_back_to_whom_they_belong(client, way, secured, own_topic):
    if client.name == "kcat" and not kcat.is_available():
        pytest.skip("no kcat here, and no apt to fetch it with")
    coming = WAYS[way](secured)
    client.send(coming, own_topic, VALUES)
    assert client.read(coming, own_topic, len(VALUES)) == VALUES
