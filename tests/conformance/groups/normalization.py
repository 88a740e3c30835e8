"""Makes responses of two servers comparable: replaces random ids in responses, and in requests.

Ids that a server has generated become names in order of appearance, such as `#1`; topic ids become
the names of their topics. A request may use these names; each server gets its own ids. The order of
lists is not compared; neither are the texts of errors, but for heartbeats of the consumer protocol:
clients log these.

    >>> names = IdMapping({"orders": b"0123456789abcdef"})
    >>> names.normalize("wire-00000000-0000-4000-8000-000000000000")
    '#1'
    >>> names.denormalize(("#1", topic_id("orders")))
    ('wire-00000000-0000-4000-8000-000000000000', b'0123456789abcdef')
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kafscale.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

_GENERATED_ID: Final = re.compile(
    r"(wire-|i-)?[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|^[\w-]{22}$"
)
"""A random UUID, in hexadecimal or base 64.

The client id, `wire`, or the instance id may precede it: Kafscale puts it there for all members,
Kafka only for members of classic groups. Instances in the other groups are called `i`.
"""

_IGNORED_FIELDS: Final = {"throttle_time_ms": 0, "port": 0}
"""Fields that are not compared, and their replacements."""

_REGEX_REASON: Final = re.compile(r"(?<=is not a valid regular expression: ).*", re.DOTALL)
"""RE2 and its Java version describe the same mistakes in other words."""


def topic_id(topic: str) -> bytes:
    """The placeholder of a topic id, in requests and responses."""
    return topic.encode().ljust(16, b".")


class IdMapping:
    """The ids of one server, and their normalized names."""

    def __init__(self, topic_ids: Mapping[str, bytes]) -> None:
        self._normal: dict[str | bytes, str | bytes] = {
            id_: topic_id(topic) for topic, id_ in topic_ids.items()
        }
        self._generated_count = 0

    def denormalize(self, value: Any) -> Any:
        """A request with the ids of this server."""
        known = {name: thing for thing, name in self._normal.items()}
        return _mapped(value, lambda leaf: known.get(leaf, leaf))

    def normalize(self, value: Any) -> Any:
        """A response with normalized ids."""
        if isinstance(value, msgspec.Struct):
            # Scalar fields come first: they name the requesting member before the others.
            fields = sorted(value.__struct_fields__, key=lambda name: _is_list(value, name))
            created = {name: self._field(name, getattr(value, name)) for name in fields}
            if "error_message" in created:
                created["error_message"] = self._message(value)
            return type(value)(**created)
        if isinstance(value, list):
            ordered = sorted(value, key=lambda each: repr(self._without_ids(each)))
            return sorted((self.normalize(each) for each in ordered), key=repr)
        return self._name(value)

    def _field(self, name: str, value: Any) -> Any:
        return _IGNORED_FIELDS[name] if name in _IGNORED_FIELDS else self.normalize(value)

    def _message(self, response: Any) -> str | None:
        """The text of an error, if it is compared."""
        if not isinstance(response, ConsumerGroupHeartbeatResponse) or not response.error_message:
            return None
        return _REGEX_REASON.sub("#", _GENERATED_ID.sub("#", response.error_message))

    def _without_ids(self, value: Any) -> Any:
        return _mapped(value, lambda leaf: self._name(leaf, may_generate=False))

    def _name(self, leaf: Any, *, may_generate: bool = True) -> Any:
        if leaf in self._normal:
            return self._normal[leaf]
        if not isinstance(leaf, str) or not _GENERATED_ID.search(leaf):
            return leaf
        if not may_generate:
            return _GENERATED_ID.sub("#", leaf)
        self._generated_count += 1
        self._normal[leaf] = _GENERATED_ID.sub(f"#{self._generated_count}", leaf)
        return self._normal[leaf]


def _is_list(message: msgspec.Struct, name: str) -> bool:
    return isinstance(getattr(message, name), list | msgspec.Struct)


def _mapped(value: Any, change: Any) -> Any:
    """The value with all leaves changed."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return type(value)(**{name: _mapped(getattr(value, name), change) for name in names})
    if isinstance(value, list | tuple):
        return type(value)(_mapped(each, change) for each in value)
    return change(value)
