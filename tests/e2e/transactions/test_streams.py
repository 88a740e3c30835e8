"""Kafka Streams with `exactly_once_v2`, and a store that is restored from its changelog."""

from collections import defaultdict

import pytest

from e2e.transactions.numbered_records import KEYS, RECORDS, create, fill
from services import java, java_programs
from services.committed_records import read_messages
from services.supervised import SupervisedProcess
from services.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(400),  # The first run downloads the jars.
    pytest.mark.skipif(not java.is_available(), reason="no Java or no Maven here"),
]


def counts(address: str) -> dict[str, list[int]]:
    """The counts of each key, in the order of the committed output."""
    found: dict[str, list[int]] = defaultdict(list)
    for messages in read_messages(address, "output").values():
        for message in messages:
            found[(message.key() or b"").decode()].append(int(message.value() or 0))
    return found


def is_complete(address: str, total: int) -> bool:
    return sum(values[-1] for values in counts(address).values()) == total


@pytest.mark.long
def test_counts_are_exact_while_application_and_broker_are_killed(start_server, tmp_path):
    """Every record changes one count by one, so a key's output is 1, 2, 3 and so on."""
    server = start_server()
    create(server.address, "input", "output")
    fill(server.address, "input")
    command = java_programs.command("WordCount", server.address, str(tmp_path / "state"))
    with SupervisedProcess(command, tmp_path / "streams.log") as application:

        def wait_for(total: int) -> None:
            wait_until(
                lambda: is_complete(server.address, total),
                f"{total} counted records",
                seconds_max=120,
                seen=application.logged,
            )

        wait_until(lambda: counts(server.address), "a first count", seconds_max=120)
        application.kill()
        wait_for(RECORDS)
        fill(server.address, "input", first=RECORDS)
        server.kill()
        server.start()
        application.kill()
        wait_for(2 * RECORDS)
        assert application.count("restored") > 0
        assert application.starts > 2
    expected = list(range(1, 2 * RECORDS // KEYS + 1))
    assert counts(server.address) == {f"key {key}": expected for key in range(KEYS)}
