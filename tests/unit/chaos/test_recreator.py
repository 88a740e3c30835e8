"""Sends to a topic that is deleted and created again are assigned to the right generation."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos import history
from chaos.anomalies import Name
from chaos.checker import check
from chaos.clients.options import ClientOptions
from chaos.clients.recreator import Sends, partition_name
from chaos.history import Journal, Poll, read
from kafscale.protocol.messages.produce import ProducedPartition


class ScriptedBrokers:
    """Returns the given responses, one after the other; None for a request without a response."""

    def __init__(self) -> None:
        self.responses: list[ProducedPartition | None] = []

    def call(self, _request: object) -> ProducedPartition | None:
        return self.responses.pop(0)


class Scenario:
    """A topic with one partition, its producer and one reader."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self.brokers = ScriptedBrokers()
        self.producer: Journal = options.journal(0)
        self.sends = Sends(options, self.producer, self.brokers)
        self.sends.begin()
        self.reader: Journal = options.journal(1)
        self.reader.write(history.Consumer(self.reader.process, 0))

    def send(self, error_code: int = 0, offset: int = 0) -> None:
        self.brokers.responses.append(ProducedPartition(0, error_code, offset))
        self.sends.send()

    def send_without_response(self) -> None:
        self.brokers.responses.append(None)
        self.sends.send()

    def read(self, generation: int, *numbers: int) -> None:
        records = list(enumerate(f"client-0:{number}" for number in numbers))
        name = partition_name(self._options, generation, 0)
        self.reader.write(Poll(self.reader.process, 0, {name: records}))

    def names(self) -> list[Name]:
        return [anomaly.name for anomaly in check(read_events(self._options))]


def read_events(options: ClientOptions) -> Iterator[history.AnyEvent]:
    return read(Path(options.directory))


@pytest.fixture
def scenario(tmp_path) -> Iterator[Scenario]:
    options = ClientOptions("", "client", "localhost:1", "topic", 1, str(tmp_path), seed=1)
    scenario = Scenario(options)
    yield scenario
    scenario.producer.close()
    scenario.reader.close()


def recreate(scenario: Scenario) -> None:
    scenario.sends.delete()
    scenario.sends.begin()


def test_records_of_each_generation_are_correct_there(scenario):
    scenario.send()
    scenario.read(0, 0)
    recreate(scenario)
    scenario.send()
    scenario.read(1, 1)
    assert scenario.names() == []


def test_acknowledged_record_in_the_next_generation_is_reported(scenario):
    scenario.send()
    scenario.read(0, 0)
    recreate(scenario)
    scenario.read(1, 0)
    assert scenario.names() == [Name.NEVER_SENT]


def test_rejected_record_in_the_next_generation_is_reported(scenario):
    scenario.send(error_code=6)
    recreate(scenario)
    scenario.read(1, 0)
    assert scenario.names() == [Name.NEVER_SENT]


def test_record_without_a_response_may_be_in_any_later_generation(scenario):
    scenario.send_without_response()
    recreate(scenario)
    recreate(scenario)
    scenario.read(2, 0)
    assert scenario.names() == []


def test_acknowledged_record_that_is_not_in_the_live_topic_is_reported(scenario):
    recreate(scenario)
    scenario.send()
    assert scenario.names() == [Name.UNSEEN]


def test_acknowledgement_during_a_deletion_promises_nothing(scenario):
    scenario.sends.delete()
    scenario.send()
    scenario.sends.begin()
    assert scenario.names() == []
