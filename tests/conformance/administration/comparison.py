"""Sends a request to Apache Kafka and to Kafscale, and compares the responses with their messages.

Two things are not compared, because clients show the same for them: an error without a message is
shown with the sentence of its error code, and nothing for a success, whose message is empty, "NONE"
or null. Neither are throttle times, the order of lists, topic ids, and the internal topics among
resources: Kafka creates these when they are first used.
"""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import UUID_ZERO
from services.wire import Wire

WAIT_S_MAX = 10

KAFKAS_SENTENCES: Final = {
    3: "This server does not host this topic-partition.",
    100: "This server does not host this topic ID.",
}
"""What Kafka's clients show for an error without a message, by error code."""


class Comparison:
    """Connections to both servers."""

    def __init__(self, kafka_port: int, own_port: int) -> None:
        self.wires = (Wire(kafka_port), Wire(own_port))

    def call(self, api: Api[Any, Any], version: int, request: Any) -> Any:
        """Assert that both respond alike; returns Kafka's response."""
        kafkas, own = self.set_up(api, version, request)
        assert normalized(own) == normalized(kafkas)
        return kafkas

    def set_up(self, api: Api[Any, Any], version: int, request: Any) -> list[Any]:
        """Send a request to both, and return Kafka's response and Kafscale's."""
        return [wire.call(api, version, request) for wire in self.wires]

    def wait_until(
        self, condition: Callable[[Any], bool], api: Api[Any, Any], version: int, request: Any
    ) -> None:
        """Repeat a request until both responses meet the condition."""
        deadline = time.monotonic() + WAIT_S_MAX
        while not all(map(condition, self.set_up(api, version, request))):
            assert time.monotonic() < deadline, f"{api.name} does not return what was changed"
            time.sleep(0.02)

    def close(self) -> None:
        for wire in self.wires:
            wire.socket.close()


def normalized(value: Any) -> Any:
    """A response that can be compared with that of another server."""
    if isinstance(value, list):
        shown = (each for each in value if not getattr(each, "resource_name", "").startswith("__"))
        return sorted(map(normalized, shown), key=repr)
    if not isinstance(value, msgspec.Struct):
        return value
    named = {name: normalized(getattr(value, name)) for name in value.__struct_fields__}
    named.pop("throttle_time_ms", None)
    if named.get("topic_id", UUID_ZERO) != UUID_ZERO:
        named["topic_id"] = "generated"
    if not named.get("error_code") or not named.get("error_message"):
        named["error_message"] = KAFKAS_SENTENCES.get(named.get("error_code", 0))
    return named
