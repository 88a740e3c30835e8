"""A client that sends requests of transactions to Apache Kafka and to Kafscale.

It is the client of the group tests with the ids of `normalization`. A coordinator completes a
transaction after it has responded, and refuses what comes meanwhile with CONCURRENT_TRANSACTIONS.
Since servers take different times for this, `patient` requests are repeated until it is over.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from conformance.groups.comparison import ComparisonClient, ExpectedDifference, Response, Server
from conformance.groups.normalization import topic_id
from conformance.transactions.normalization import TransactionNames
from kafscale.protocol.api import Api
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.delete_records import (
    DELETE_RECORDS,
    DeleteRecordsRequest,
    PartitionToTrim,
    TopicToTrim,
)
from kafscale.protocol.messages.delete_topics import DELETE_TOPICS, DeleteTopicsRequest
from kafscale.protocol.messages.list_transactions import ListTransactionsResponse
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services.wire import Wire

WAIT_S_MAX: Final = 20
_TRANSIENT: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
}


class TransactionClient(ComparisonClient):
    """Sends requests to both servers."""

    def __init__(self, kafka: Server, ours: Server, name: str) -> None:
        self.timestamp_ms = time.time_ns() // 1_000_000

        def names(topic_ids: Mapping[str, bytes]) -> TransactionNames:
            return TransactionNames(topic_ids, self.timestamp_ms)

        super().__init__(kafka, ours, name, names)
        self.transactional_id = name
        self.topic = name
        self.servers = (kafka, ours)

    def create(self, topic: str, partitions: int, **configs: object) -> None:
        """Create a topic on both servers, and wait for its leaders."""
        for server in (self._kafka, self._ours):
            server.wire("first").create(topic, partitions, **configs)
            deadline = time.monotonic() + WAIT_S_MAX
            while (id_ := _served_topic(server.wire("first"), topic)) is None:
                assert time.monotonic() < deadline, f"{server.name} does not serve {topic}"
                time.sleep(0.02)
            server.names.add_topic(id_, topic_id(topic))

    def delete(self, topic: str) -> None:
        """Delete a topic on both servers, and wait until it is gone."""
        request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=10_000)
        for server in (self._kafka, self._ours):
            wire = server.wire("first")
            wire.call(DELETE_TOPICS, 5, request)
            deadline = time.monotonic() + WAIT_S_MAX
            while wire.offset(topic, -1).error_code == ErrorCode.NONE:
                assert time.monotonic() < deadline, f"{server.name} still serves {topic}"
                time.sleep(0.02)

    def trim(self, topic: str, partition: int, offset: int) -> None:
        """Delete the records below an offset."""
        topics = [TopicToTrim(topic, [PartitionToTrim(partition, offset)])]
        self.call(DELETE_RECORDS, 2, DeleteRecordsRequest(topics, 10_000))

    def call(
        self,
        api: Api[Any, Any],
        version: int,
        request: Any,
        *,
        on: str = "first",
        ours: ExpectedDifference | None = None,
        patient: bool = False,
    ) -> Response:
        if not patient:
            return super().call(api, version, request, on=on, ours=ours)
        received = [
            self._settled(server.wire(on), api, version, server.names.denormalize(request))
            for server in (self._kafka, self._ours)
        ]
        return self._compare(api, version, received, ours)

    def _settled(self, wire: Wire, api: Api[Any, Any], version: int, request: Any) -> Response:
        """The first response without an error that passes by itself."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not _TRANSIENT.isdisjoint(error_codes(response := wire.call(api, version, request))):
            if time.monotonic() > deadline:
                break
            time.sleep(0.01)
        return response

    def _difference(self, expected: Response, own: Response) -> str:
        return "\n".join(paths(expected, own))

    def _own_groups(self, response: Response) -> Response:
        """Servers are shared by tests: drop the transactions of other tests, too."""
        if isinstance(response, ListTransactionsResponse):
            response.transactions = [
                each
                for each in response.transactions
                if each.transactional_id.startswith(self.transactional_id)
            ]
        return super()._own_groups(response)


def error_codes(response: Any) -> Iterator[int]:
    """All error codes in a response, in order."""
    if isinstance(response, msgspec.Struct):
        for name in response.__struct_fields__:
            value = getattr(response, name)
            if name == "error_code":
                yield value
            else:
                yield from error_codes(value)
    elif isinstance(response, list):
        for each in response:
            yield from error_codes(each)


def paths(expected: Any, own: Any, path: str = "") -> Iterator[str]:
    """Where two responses differ, and their values there."""
    if expected == own:
        return
    if isinstance(expected, msgspec.Struct) and type(expected) is type(own):
        for name in expected.__struct_fields__:
            yield from paths(getattr(expected, name), getattr(own, name), f"{path}.{name}")
    elif isinstance(expected, list | tuple) and len(expected) == len(own or ()):
        for index, (one, other) in enumerate(zip(expected, own, strict=True)):
            yield from paths(one, other, f"{path}[{index}]")
    else:
        yield f"  {path}: expected {expected!r}, ours {own!r}"


def _served_topic(wire: Wire, topic: str) -> bytes | None:
    """The id of a topic, once all its partitions are served."""
    requested = MetadataRequest(topics=[TopicToDescribe(name=topic)])
    (found,) = wire.call(METADATA, 12, requested).topics
    if found.error_code or any(each.error_code for each in found.partitions):
        return None
    offsets = [wire.offset(topic, -1, partition=each.index) for each in found.partitions]
    return None if any(each.error_code for each in offsets) else found.topic_id
