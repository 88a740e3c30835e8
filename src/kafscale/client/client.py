"""The client of a cluster: finds its brokers and keeps one connection to each.

A connection is opened on first use and again after it was lost. The client does not cache topic
metadata: producers and consumers keep what they need, and refresh it when an error shows that it is
stale.
"""

import asyncio
from collections.abc import Sequence
from typing import Self

from kafscale.client.connection import Connection
from kafscale.client.errors import BrokerResponseError, UnreachableError, check
from kafscale.client.isolation import IsolationLevel
from kafscale.client.security import PLAINTEXT, Security
from kafscale.net.address import Address
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_offsets import (
    LIST_OFFSETS,
    ListOffsetsRequest,
    PartitionToList,
    TopicToList,
)
from kafscale.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataResponse,
    TopicMetadata,
    TopicToDescribe,
)

LATEST_TIME = -1
EARLIEST_TIME = -2
NO_LEADER = -1


class Client:
    """A cluster, reached through its bootstrap servers. An asynchronous context manager.

    All connections use the same security settings.
    """

    def __init__(self, bootstrap: Sequence[Address], security: Security = PLAINTEXT) -> None:
        self._bootstrap = bootstrap
        self._security = security
        self._brokers: dict[int, Address] = {}
        self._controller_id = -1
        self._connections: dict[Address, Connection] = {}
        self._opened: list[Connection] = []
        """All connections, including those that `connect` returned."""
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(connection.aclose() for connection in self._opened))

    @property
    def broker_ids(self) -> list[int]:
        """The ids of the brokers in the last metadata response."""
        return sorted(self._brokers)

    async def metadata(
        self, names: Sequence[str] | None, *, create: bool = False
    ) -> MetadataResponse:
        """Fetch the metadata of these topics; None means all topics."""
        topics = None if names is None else [TopicToDescribe(name=name) for name in names]
        connection = await self.any_broker()
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        response = await connection.ask(METADATA, request)
        check(f"the broker at {connection.address}", response.error_code)
        self._brokers = {each.node_id: Address(each.host, each.port) for each in response.brokers}
        self._controller_id = response.controller_id
        return response

    async def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """Fetch the metadata of a topic; with `create`, the broker may create it."""
        response = await self.metadata([name], create=create)
        (topic,) = response.topics
        missing = topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        hint = f"create it with: kafscale topic create {name}" if missing else ""
        check(f"topic {name}", topic.error_code, hint=hint)
        return topic

    async def any_broker(self) -> Connection:
        """An open connection, or else one to the first reachable broker."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        problems: dict[str, None] = {}
        for address in dict.fromkeys((*self._brokers.values(), *self._bootstrap)):
            try:
                return await self._connect(address)
            except UnreachableError as error:
                problems[str(error)] = None
        raise UnreachableError("\n".join(problems))

    async def broker(self, node_id: int) -> Connection:
        address = self._brokers.get(node_id)
        if address is None:
            raise BrokerResponseError(f"broker {node_id}", ErrorCode.LEADER_NOT_AVAILABLE)
        try:
            return await self._connect(address)
        except UnreachableError as error:
            if address in self._bootstrap:
                raise
            raise advertised_address_error(node_id, address, error) from None

    async def ask_controller(
        self, api: Api[Request, Response], request: Request, *, wait_seconds: float = 0.0
    ) -> Response:
        """Send a request to the controller."""
        if self._controller_id not in self._brokers:
            await self.metadata([])
        known = self._controller_id in self._brokers
        connection = await (self.broker(self._controller_id) if known else self.any_broker())
        return await connection.ask(api, request, wait_seconds=wait_seconds)

    async def offsets(
        self,
        topic: TopicMetadata,
        times: dict[int, int],
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[int, int]:
        """List the offsets at these timestamps, by partition; -1 if there is none.

        With READ_COMMITTED, the latest offset is the last stable one.
        """
        offsets: dict[int, int] = {}

        async def ask(leader_id: int, indexes: list[int]) -> None:
            connection = await self.broker(leader_id)
            partitions = [PartitionToList(index=each, timestamp_ms=times[each]) for each in indexes]
            name = topic.name or ""
            response = await connection.ask(
                LIST_OFFSETS,
                ListOffsetsRequest(
                    replica_id=-1,
                    isolation_level=isolation.code,
                    topics=[TopicToList(name, partitions)],
                ),
            )
            for listed in response.topics[0].partitions:
                check(f"topic {name}, partition {listed.index}", listed.error_code)
                # Before v1, a response has a list of offsets, the latest first.
                offsets[listed.index] = listed.offsets[0] if listed.offsets else listed.offset

        leaders = leaders_of(topic)
        await asyncio.gather(
            *(
                ask(
                    leader_id, [each for each in times if leaders.get(each, NO_LEADER) == leader_id]
                )
                for leader_id in sorted({leaders.get(each, NO_LEADER) for each in times})
            )
        )
        return offsets

    async def connect(self, address: Address) -> Connection:
        """Open a connection that is not shared."""
        connection = await Connection.open(address, self._security)
        self._opened = [each for each in self._opened if not each.is_closed]
        self._opened.append(connection)
        return connection

    async def _connect(self, address: Address) -> Connection:
        async with self._opening:
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = self._connections[address] = await self.connect(address)
            return connection


def advertised_address_error(
    node_id: int, address: Address, error: UnreachableError
) -> UnreachableError:
    """The error for a broker whose advertised address is unreachable."""
    return UnreachableError(
        f"broker {node_id} advertises the address {address}, but: {error}\n"
        "if that address is wrong, set KAFSCALE_BROKER_ADVERTISED_HOST for the broker"
    )


def leaders_of(topic: TopicMetadata) -> dict[int, int]:
    """The leader of each partition; `NO_LEADER` if it has none."""
    return {partition.index: partition.leader_id for partition in topic.partitions}
