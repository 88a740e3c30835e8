"""Encodes long responses piece by piece, so that other requests are served in between.

    parts = yield from encode(response, version, flexible=True)

The codec of a message encodes all of it at once: 100,000 partitions or producers take some 30 ms.
Here the longest list of a message, and the lists in its elements, are encoded in runs of elements.

Invariant: the parts together are what the codec of the message returns.
"""

import struct
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from kafscale.protocol.codec import varint
from kafscale.protocol.codec.codec import Buffer, codec
from kafscale.protocol.codec.schema import Array, MessageType, fields, inner_message
from kafscale.protocol.codec.wire import Message, PrimitiveType

RESULTS_AT_ONCE: Final = 10_000
"""How many structs are encoded at once: a few milliseconds."""

NUMBERS_PER_RESULT: Final = 50
"""How many numbers of a list take as long as a struct."""


class EncodedResponse(Message):
    """A response that is encoded already, but for the throttle time."""

    throttle_time_ms: int = 0
    has_throttle_time: bool = False
    """Whether the response has it in this version, as its first field."""
    parts: list[Buffer] = []

    def encode(self) -> list[Buffer]:
        if not self.has_throttle_time:
            return self.parts
        throttle_time = struct.pack(">i", self.throttle_time_ms)
        return [throttle_time + bytes(self.parts[0][len(throttle_time) :]), *self.parts[1:]]


def encoded_response(
    response: Message, version: int, *, flexible: bool
) -> Generator[int, None, EncodedResponse]:
    """Yields how much was encoded since the last time."""
    parts: list[Buffer] = []
    yield from _encode(response, version, flexible, parts)
    first = fields(type(response), version)[0].name
    return EncodedResponse(has_throttle_time=first == "throttle_time_ms", parts=parts)


def _encode(
    message: Message, version: int, flexible: bool, parts: list[Buffer]
) -> Generator[int, None, None]:
    shape = _shape(type(message), version, flexible)
    encode = codec(type(message), version, flexible=flexible).encode_bytes
    if not shape.elements:
        parts.append(encode(message))
        yield 1
        return
    elements: Sequence[Message] = getattr(message, shape.elements) or ()

    def encode_run(run: Sequence[Message]) -> memoryview:
        """The elements, without what is around them in the message."""
        whole = memoryview(encode(replace(message, **{shape.elements: run})))
        count_bytes = len(_count(len(run), flexible=flexible))
        return whole[head_bytes + count_bytes : len(whole) - shape.tail_bytes]

    empty = encode(replace(message, **{shape.elements: []}))
    head_bytes = len(empty) - shape.tail_bytes - len(_count(0, flexible=flexible))
    parts.append(empty[:head_bytes] + _count(len(elements), flexible=flexible))
    for run, results in _runs(elements, version, flexible):
        if len(run) == 1 and results > RESULTS_AT_ONCE:
            yield from _encode(run[0], version, flexible, parts)
        else:
            parts.append(encode_run(run))
            yield results
    parts.append(empty[len(empty) - shape.tail_bytes :])


class _Shape(NamedTuple):
    """What lists a message has."""

    elements: str
    """The list of structs; empty if there is none."""
    numbers: tuple[str, ...]
    """The other lists."""
    is_leaf: bool
    """Whether the elements have no lists themselves."""
    tail_bytes: int
    """The size of what follows the list of structs."""


@cache
def _shape(message: MessageType, version: int, flexible: bool) -> _Shape:
    present = fields(message, version)
    lists = [field for field in present if isinstance(field.type, Array)]
    of_structs = [field for field in lists if inner_message(field.type)]
    numbers = tuple(field.name for field in lists if field not in of_structs)
    if not of_structs:
        return _Shape("", numbers, True, 0)
    (elements,) = of_structs
    inner = inner_message(elements.type)
    assert inner is not None
    inner_shape = _shape(inner, version, flexible)
    tail_bytes = int(flexible)  # The count of tagged fields.
    for field in present[present.index(elements) + 1 :]:
        assert isinstance(field.type, PrimitiveType), field
        assert field.type.format, field
        assert field.tag is None, field
        tail_bytes += field.type.size_bytes
    is_leaf = not inner_shape.elements and not inner_shape.numbers
    return _Shape(elements.name, numbers, is_leaf, tail_bytes)


def _runs(
    elements: Sequence[Message], version: int, flexible: bool
) -> Iterator[tuple[Sequence[Message], int]]:
    """Runs of elements that may be encoded at once, unless they are a single one."""
    start, results = 0, 0
    for index, element in enumerate(elements):
        added = _results(element, version, flexible)
        if results and results + added > RESULTS_AT_ONCE:
            yield elements[start:index], results
            start, results = index, 0
        results += added
    if start < len(elements):
        yield elements[start:], results


def _results(message: Message, version: int, flexible: bool) -> int:
    """How many structs the message has; does not count far above `RESULTS_AT_ONCE`."""
    shape = _shape(type(message), version, flexible)
    results = 1
    for name in shape.numbers:
        results += len(getattr(message, name) or ()) // NUMBERS_PER_RESULT
    if not shape.elements:
        return results
    elements: Sequence[Any] = getattr(message, shape.elements) or ()
    if shape.is_leaf:
        return results + len(elements)
    for element in elements:
        results += _results(element, version, flexible)
        if results > RESULTS_AT_ONCE:
            break
    return results


def _count(count: int, *, flexible: bool) -> bytes:
    return varint.encode(count + 1) if flexible else struct.pack(">i", count)
