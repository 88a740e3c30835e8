"""What two servers say, made comparable: chance is taken out of answers, and put into requests.

Ids that a server has made up become names in the order in which they appear, such as `#1`;
topic ids become the names of their topics. A request may use these names, and reaches each server
with what that one calls them. The order of lists and the texts of errors are nobody's promise.

    >>> names = Names({"orders": b"0123456789abcdef"})
    >>> names.normal("wire-00000000-0000-4000-8000-000000000000")
    '#1'
    >>> names.real(("#1", topic_id("orders")))
    ('wire-00000000-0000-4000-8000-000000000000', b'0123456789abcdef')
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_MADE_UP: Final = re.compile(
    r"(wire-|i-)?[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|^[\w-]{22}$"
)
"""A random UUID, written in hexadecimal or in base 64.

The name of the client, `wire`, or of its instance may stand before it: ours puts it there for
everybody, Kafka for none but the members of classic groups. An instance that is called `i` is one
in the other groups.
"""

_CHANCE: Final = {"throttle_time_ms": 0, "error_message": None, "port": 0}
"""Fields that say nothing about groups, and what stands for them."""


def topic_id(topic: str) -> bytes:
    """What stands for the id of a topic, in requests and answers."""
    return topic.encode().ljust(16, b".")


class Names:
    """What one server calls things, and what they are called here."""

    def __init__(self, topic_ids: Mapping[str, bytes]) -> None:
        self._normal: dict[str | bytes, str | bytes] = {
            id_: topic_id(topic) for topic, id_ in topic_ids.items()
        }
        self._made_up_count = 0

    def real(self, value: Any) -> Any:
        """A request as this server has to be asked."""
        known = {name: thing for thing, name in self._normal.items()}
        return _mapped(value, lambda leaf: known.get(leaf, leaf))

    def normal(self, value: Any) -> Any:
        """An answer as any server should have given it."""
        if isinstance(value, msgspec.Struct):
            # What is said of the asker itself comes first: it is known before the others are.
            fields = sorted(value.__struct_fields__, key=lambda name: _is_list(value, name))
            made = {name: self._field(name, getattr(value, name)) for name in fields}
            return type(value)(**made)
        if isinstance(value, list):
            ordered = sorted(value, key=lambda each: repr(self._without_names(each)))
            return sorted((self.normal(each) for each in ordered), key=repr)
        return self._name(value)

    def _field(self, name: str, value: Any) -> Any:
        return _CHANCE[name] if name in _CHANCE else self.normal(value)

    def _without_names(self, value: Any) -> Any:
        return _mapped(value, lambda leaf: self._name(leaf, may_make=False))

    def _name(self, leaf: Any, *, may_make: bool = True) -> Any:
        if leaf in self._normal:
            return self._normal[leaf]
        if not isinstance(leaf, str) or not _MADE_UP.search(leaf):
            return leaf
        if not may_make:
            return _MADE_UP.sub("#", leaf)
        self._made_up_count += 1
        self._normal[leaf] = _MADE_UP.sub(f"#{self._made_up_count}", leaf)
        return self._normal[leaf]


def _is_list(message: msgspec.Struct, name: str) -> bool:
    return isinstance(getattr(message, name), list | msgspec.Struct)


def _mapped(value: Any, change: Any) -> Any:
    """The same, but for its leaves."""
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return type(value)(**{name: _mapped(getattr(value, name), change) for name in names})
    if isinstance(value, list | tuple):
        return type(value)(_mapped(each, change) for each in value)
    return change(value)
