"""A client that sends a request to Apache Kafka and to Kafscale, and compares the responses.

Everything is compared, in order and with the texts of errors, except ports and throttle times. Ids
of topics become their names.
"""

from collections.abc import Callable
from typing import Any, Self

from conformance.groups.comparison import Server
from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Message
from services.wire import Wire

IGNORED = {"throttle_time_ms", "port"}


class StrictClient:
    """A connection to each of the two servers."""

    def __init__(self, *servers: Server) -> None:
        self._wires = [(server, Wire(server.port)) for server in servers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for _, wire in self._wires:
            wire.socket.close()

    def compare(
        self,
        api: Api[Any, Any],
        version: int,
        request: Message,
        *,
        ours: Callable[[Any], Any] | None = None,
    ) -> None:
        """Assert that the responses are equal; `ours` converts Kafka's into the expected one."""
        (kafkas, own) = (
            _comparable(
                wire.call(api, version, request),
                {topic_id: name for name, topic_id in server.topic_ids.items()},
            )
            for server, wire in self._wires
        )
        expected = ours(kafkas) if ours else kafkas
        assert own == expected, f"{own}\nKAFKA {expected}"


def _comparable(value: Any, names: dict[bytes, str]) -> Any:
    if isinstance(value, Message):
        fields = {
            name: _comparable(getattr(value, name), names)
            for name in value.__struct_fields__
            if name not in IGNORED
        }
        return type(value)(**fields)
    if isinstance(value, list):
        return [_comparable(each, names) for each in value]
    if isinstance(value, bytes) and value in names:
        return names[value].encode()
    return value
