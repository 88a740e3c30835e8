"""Requests about a topic that is deleted and created again, to random brokers.

Responses of a broker that does not know of the last change yet are expected: creation and deletion
are repeated until their effect is certain, or until the time is over. A deletion names the topic's
id, so that one that is executed late cannot delete the next topic of that name.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from chaos.clients.options import ClientOptions
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreateTopicsRequest,
    TopicToCreate,
)
from kafscale.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    TopicToDelete,
)
from kafscale.protocol.messages.fetch import (
    FETCH,
    FetchedPartition,
    FetchRequest,
    PartitionToFetch,
    TopicToFetch,
)
from kafscale.protocol.messages.metadata import METADATA, MetadataRequest, TopicToDescribe
from services.wire import LATEST, Wire

ANSWER_S_MAX = 4
RETRY_S = 0.2
FETCH_BYTES = 1 << 20

_Result = TypeVar("_Result")


class Brokers:
    """Connections to all brokers; one thread may use it."""

    def __init__(self, options: ClientOptions, seed: int) -> None:
        self._ports = [int(each.rpartition(":")[2]) for each in options.bootstrap.split(",")]
        self._rng = random.Random(seed)
        self._wires: dict[int, Wire] = {}

    def call(self, request: Callable[[Wire], _Result]) -> _Result | None:
        """Send a request to a random broker; return None if there is no response."""
        port = self._rng.choice(self._ports)
        try:
            wire = self._wires.get(port) or Wire(port, timeout_s=ANSWER_S_MAX)
            self._wires[port] = wire
            return request(wire)
        except OSError:
            failed = self._wires.pop(port, None)
            if failed is not None:
                failed.socket.close()
            return None


class TopicRequests:
    """The requests about one topic name."""

    def __init__(
        self, options: ClientOptions, brokers: Brokers, should_wait: Callable[[], bool]
    ) -> None:
        """`should_wait` returns False when the time for a creation or deletion is over."""
        self._should_wait = should_wait
        self._topic = options.topic
        self._partitions = options.partitions
        self._brokers = brokers
        self._former: set[UUID] = set()

    def create(self) -> UUID:
        """Create the topic; return its id, which differs from that of all former topics."""
        topics = [TopicToCreate(self._topic, self._partitions, -1)]
        request = CreateTopicsRequest(topics, timeout_ms=ANSWER_S_MAX * 1000)
        while self._should_wait():
            response = self._brokers.call(lambda wire: wire.call(CREATE_TOPICS, 7, request))
            if response is not None:
                created = response.topics[0]
                if created.error_code == 0:
                    return UUID(bytes=bytes(created.topic_id))
                if created.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
                    topic_id = self._id()
                    if topic_id is not None and topic_id not in self._former:
                        return topic_id  # An earlier request was executed.
                    if topic_id is not None:
                        self._delete_once(topic_id)
            time.sleep(RETRY_S)
        raise TimeoutError(f"{self._topic} cannot be created")

    def delete(self, topic_id: UUID) -> None:
        """Delete the topic; return when a broker says that there is none with this id."""
        self._former.add(topic_id)
        while not self._delete_once(topic_id):
            if not self._should_wait():
                raise TimeoutError(f"{self._topic} cannot be deleted")
            time.sleep(RETRY_S)

    def fetch(self, topic_id: UUID | None, index: int, offset: int) -> FetchedPartition | None:
        """Fetch by id, or by name without one."""
        partition = PartitionToFetch(index=index, offset=offset, max_bytes=FETCH_BYTES)
        if topic_id is None:
            version, topic = 12, TopicToFetch(self._topic, partitions=[partition])
        else:
            version, topic = 13, TopicToFetch(topic_id=topic_id.bytes, partitions=[partition])
        request = FetchRequest(topics=[topic])
        response = self._brokers.call(lambda wire: wire.call(FETCH, version, request))
        if response is None or not response.topics:
            return None
        return response.topics[0].partitions[0]

    def ends(self) -> dict[int, int]:
        """The end offsets by partition."""
        found: dict[int, int] = {}
        while len(found) < self._partitions and self._should_wait():
            for index in range(self._partitions):
                listed = self._brokers.call(
                    lambda wire, index=index: wire.offset(self._topic, LATEST, partition=index)
                )
                if listed is not None and listed.error_code == 0:
                    found[index] = listed.offset
        return found

    def _delete_once(self, topic_id: UUID) -> bool:
        topics = [TopicToDelete(None, topic_id.bytes)]
        request = DeleteTopicsRequest(topics, timeout_ms=ANSWER_S_MAX * 1000)
        response = self._brokers.call(lambda wire: wire.call(DELETE_TOPICS, 6, request))
        return response is not None and response.topics[0].error_code in {
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_ID,
        }

    def _id(self) -> UUID | None:
        request = MetadataRequest(
            [TopicToDescribe(name=self._topic)], allow_auto_topic_creation=False
        )
        response = self._brokers.call(lambda wire: wire.call(METADATA, 12, request))
        if response is None or response.topics[0].error_code:
            return None
        return UUID(bytes=bytes(response.topics[0].topic_id))
