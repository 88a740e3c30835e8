"""A client that talks with two servers as if they were one, and hears whether they agree.

    talk = Duet(apache_kafka, ours, "group")
    talk.call(HEARTBEAT, 4, HeartbeatRequest(talk.group, 1, "nobody"))

Whatever it is told to say, it says to both; what both answer, it returns, with the names of
`normal`. Where they do not agree it goes on with what Apache Kafka says, and `finish` fails with
all differences. One that is meant is told by `ours`, which makes our answer of Kafka's.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

from conformance.groups.normal import Names
from kafscale.protocol.api import Api
from kafscale.protocol.messages.list_groups import ListGroupsResponse
from services.wire import Wire

WAIT_S_MAX = 10
ANSWER_S_MAX = 5

Answer = Any
Differently = Callable[[Answer], Answer]
Pending = tuple[Api[Any, Any], int]


class Server(NamedTuple):
    """Where to reach one of the two, and what it calls the topics."""

    name: str
    port: int
    topic_ids: Mapping[str, bytes]


class _Side:
    """One server in one conversation, over connections with names."""

    def __init__(self, server: Server) -> None:
        self.name = server.name
        self.names = Names(server.topic_ids)
        self._port = server.port
        self._wires: dict[str, Wire] = {}

    def wire(self, on: str) -> Wire:
        if on not in self._wires:
            self._wires[on] = Wire(self._port, timeout_s=ANSWER_S_MAX)
        return self._wires[on]

    def receive(self, on: str, api: Api[Any, Any], version: int) -> Answer:
        try:
            return self.wire(on).receive(api, version)[1]
        except TimeoutError as error:
            raise TimeoutError(f"{self.name} does not answer {api.name} v{version}") from error

    def close(self) -> None:
        for wire in self._wires.values():
            wire.socket.close()


class Duet:
    """One conversation with both."""

    def __init__(self, kafka: Server, ours: Server, group: str) -> None:
        self.group = group
        self._kafka, self._ours = _Side(kafka), _Side(ours)
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
        ours: Differently | None = None,
    ) -> Answer:
        """What both answer, over the connection of that name."""
        self.send(api, version, request, on=on)
        return self.receive(on, ours=ours)

    def send(self, api: Api[Any, Any], version: int, request: Any, *, on: str) -> None:
        """Ask for something that may have to wait for others."""
        for side in (self._kafka, self._ours):
            side.wire(on).send(api, version, side.names.real(request))
        self._pending[on] = (api, version)

    def receive(self, on: str, *, ours: Differently | None = None) -> Answer:
        """What both answer to the last question that was asked over this connection."""
        api, version = self._pending.pop(on)
        kafkas, own = (
            side.names.normal(self._about_us(side.receive(on, api, version)))
            for side in (self._kafka, self._ours)
        )
        expected = ours(kafkas) if ours else kafkas
        if own != expected:
            self._differences.append(
                f"{api.name} v{version}\n  expected {expected}\n  ours     {own}"
            )
        return kafkas

    def wait_until(
        self, api: Api[Any, Any], version: int, request: Any, is_so: Callable[[Answer], bool]
    ) -> None:
        """Ask each again and again until it answers so; that is all that is said of it."""
        for side in (self._kafka, self._ours):
            deadline = time.monotonic() + WAIT_S_MAX
            asked = side.names.real(request)
            while not is_so(answer := side.wire("watch").call(api, version, asked)):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{side.name} still says {answer}")
                time.sleep(0.01)

    def finish(self) -> None:
        assert not self._differences, "\n" + "\n".join(self._differences)

    def _about_us(self, answer: Answer) -> Answer:
        """Servers are shared: other conversations' groups are nobody's business here."""
        if isinstance(answer, ListGroupsResponse):
            answer.groups = [each for each in answer.groups if each.group_id.startswith(self.group)]
        return answer
