"""A client that sends every request to Apache Kafka and to Kafscale, and compares the responses.

    client = ComparisonClient(apache_kafka, ours, "group")
    client.call(HEARTBEAT, 4, HeartbeatRequest(client.group, 1, "unknown"))

It returns Kafka's response, with the ids of `normalization`. Differences are collected, and
`finish` fails with all of them. `ours` describes an intended difference: it converts Kafka's
response into the expected one of Kafscale.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from conformance.groups.normalization import IdMapping
from kafscale.protocol.api import Api
from kafscale.protocol.messages.list_groups import ListGroupsResponse
from services.wire import Wire

WAIT_S_MAX = 10
RESPONSE_S_MAX = 5

Response = Any
ExpectedDifference = Callable[[Response], Response]
Pending = tuple[Api[Any, Any], int]


class Server(NamedTuple):
    """The address of a server, and its topic ids."""

    name: str
    port: int
    topic_ids: Mapping[str, bytes]


class _ServerClient:
    """Connections to one server, by name."""

    def __init__(self, server: Server, names: IdMapping) -> None:
        self.name = server.name
        self.names = names
        self._port = server.port
        self._wires: dict[str, Wire] = {}

    def wire(self, on: str) -> Wire:
        if on not in self._wires:
            self._wires[on] = Wire(self._port, timeout_s=RESPONSE_S_MAX)
        return self._wires[on]

    def receive(self, on: str, api: Api[Any, Any], version: int) -> Response:
        try:
            return self.wire(on).receive(api, version)[1]
        except TimeoutError as error:
            raise TimeoutError(f"{self.name} does not respond to {api.name} v{version}") from error

    def close(self) -> None:
        for wire in self._wires.values():
            wire.socket.close()


class ComparisonClient:
    """Sends requests to both servers."""

    def __init__(
        self,
        kafka: Server,
        ours: Server,
        group: str,
        names: Callable[[Mapping[str, bytes]], IdMapping] = IdMapping,
    ) -> None:
        self.group = group
        self._kafka, self._ours = (
            _ServerClient(server, names(server.topic_ids)) for server in (kafka, ours)
        )
        self._pending: dict[str, Pending] = {}
        self._differences: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kafka.close()
        self._ours.close()

    def call(
        self,
        api: Api[Any, Any],
        version: int,
        request: Any,
        *,
        on: str = "first",
        ours: ExpectedDifference | None = None,
    ) -> Response:
        """Send a request over the named connection; return the response."""
        self.send(api, version, request, on=on)
        return self.receive(on, ours=ours)

    def send(self, api: Api[Any, Any], version: int, request: Any, *, on: str) -> None:
        """Send a request whose response may have to wait for others."""
        for server in (self._kafka, self._ours):
            server.wire(on).send(api, version, server.names.denormalize(request))
        self._pending[on] = (api, version)

    def receive(self, on: str, *, ours: ExpectedDifference | None = None) -> Response:
        """The response to the last request of this connection."""
        api, version = self._pending.pop(on)
        received = [server.receive(on, api, version) for server in (self._kafka, self._ours)]
        return self._compare(api, version, received, ours)

    def _compare(
        self,
        api: Api[Any, Any],
        version: int,
        received: Sequence[Response],
        ours: ExpectedDifference | None,
    ) -> Response:
        kafkas, own = (
            server.names.normalize(self._own_groups(response))
            for server, response in zip((self._kafka, self._ours), received, strict=True)
        )
        expected = ours(kafkas) if ours else kafkas
        if own != expected:
            self._differences.append(f"{api.name} v{version}\n{self._difference(expected, own)}")
        return kafkas

    def _difference(self, expected: Response, own: Response) -> str:
        return f"  expected {expected}\n  ours     {own}"

    def wait_until(
        self, api: Api[Any, Any], version: int, request: Any, condition: Callable[[Response], bool]
    ) -> None:
        """Repeat a request to each server until its response meets the condition."""
        for server in (self._kafka, self._ours):
            deadline = time.monotonic() + WAIT_S_MAX
            requested = server.names.denormalize(request)
            while not condition(response := server.wire("watch").call(api, version, requested)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{server.name} still returns {response}")
                time.sleep(0.01)

    def finish(self) -> None:
        assert not self._differences, "\n" + "\n".join(self._differences)

    def _own_groups(self, response: Response) -> Response:
        """Servers are shared by tests: drop the groups of other tests."""
        if isinstance(response, ListGroupsResponse):
            response.groups = [
                each for each in response.groups if each.group_id.startswith(self.group)
            ]
        return response
