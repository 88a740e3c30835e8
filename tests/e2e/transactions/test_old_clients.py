"""Transactions of Java clients since 0.11, the first version that has them."""

import pytest

from e2e.transactions.numbered_records import create
from services.committed_records import read_values
from services.old_clients import OLD_CLIENTS, JavaClient
from services.selection import long_except
from services.wire import Wire, batch_of

pytestmark = pytest.mark.timeout(300)  # The first run downloads the clients.

VERSIONS = ("0.11.0.3", "1.1.1", "2.8.2")
RECORDS = 45


@pytest.fixture(params=long_except(VERSIONS, "2.8.2".__eq__))
def client(request):
    client = OLD_CLIENTS[f"Java {request.param}"]
    if missing := client.missing():
        pytest.skip(f"no {missing} here")
    assert isinstance(client, JavaClient)
    return client


def test_old_client_transforms_a_topic(client, start_server):
    """Half of its transactions abort; the offsets are those of the others."""
    server = start_server()
    create(server.address, "input", "output")
    values = [f"value {number}" for number in range(RECORDS)]
    with Wire(server.port) as wire:
        for value in values:
            wire.produce("input", batch_of([value.encode()]))
    client.transform(server.address, "input", "output", "group", RECORDS)
    output = read_values(server.address, "output")
    assert sorted(value for part in output.values() for value in part) == sorted(values)
    written = read_values(server.address, "output", isolation="read_uncommitted")
    assert sum(len(part) for part in written.values()) == 2 * RECORDS
