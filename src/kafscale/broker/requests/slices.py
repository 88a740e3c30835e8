"""Serves requests with long lists in slices, so that other requests are served in between.

    route(DESCRIBE_GROUPS, describe_groups.handle, describe_groups.error_response, results="groups")

An element of a list costs some ten microseconds: topics to describe, groups to delete. A request
may have thousands, and one event loop serves all clients. A route that names the list of results
says that the elements are independent of each other: its handler is called with a few hundred at a
time, and the results are joined. Shorter lists are served at once, without a task.

Invariant: an iteration of the event loop serves one slice, however many such requests there are.
They take turns, slice by slice, so that requests of other clients wait for one slice only; and
together they use half of the event loop's time at most. That time is charged to the quotas of their
clients.

Where an element may have any number of results, such as the offsets of a group, the number of
elements says nothing. Such a handler is a generator, which yields how many results it has added
since the last time, and `serve` runs it in slices; a long response is encoded in slices, too.

    def handle(context, request):
        return serve(context, _describe_all(context, request))

Not for handlers that compare elements with each other, as CreateTopics does to refuse duplicates,
and not for requests that the client may send without waiting for the one before, because a later
request is served between two slices: OffsetCommit is followed by LeaveGroup. A handler that
compares elements may call `each` for the parts that do not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from msgspec.structs import replace

from kafscale.broker.requests.context import RequestContext
from kafscale.broker.requests.sliced_encoding import RESULTS_AT_ONCE, encoded_response
from kafscale.protocol.api import Api, Response
from kafscale.protocol.codec.schema import Array, Field, MessageType, fields, inner_message
from kafscale.protocol.codec.wire import Message

if TYPE_CHECKING:
    from kafscale.broker.requests.route import Handler

Element = TypeVar("Element")
Result = TypeVar("Result")

SLICE_ELEMENTS: Final = 250
"""A slice takes a few milliseconds."""

SLICE_RESULTS: Final = 2_500
"""So does one with this number of results, such as a partition with its offset."""

ELEMENT_RESULTS: Final = SLICE_RESULTS // SLICE_ELEMENTS
"""What an element of a request takes, counted in results."""

Work = Generator[int, None, Result]
"""Yields how many results it has added since the last time, and returns all of them."""


def sliced(
    api: Api[Any, Any], version: int, handle: "Handler[Any, Any]", results: str
) -> "Handler[Any, Any]":
    """A handler that serves long lists in slices; `results` is the list in the response."""
    message: MessageType = api.request
    lists = [field for field in fields(message, version) if isinstance(field.type, Array)]
    if not lists:
        return handle
    (elements,) = lists
    inner = _inner_list(elements, version)

    def handle_slices(context: RequestContext, request: Message) -> Any:
        requested = getattr(request, elements.name)
        if not requested or _weight(requested, inner) <= SLICE_ELEMENTS:
            return handle(context, request)
        parts = (replace(request, **{elements.name: each}) for each in _split(requested, inner))
        return _handle_each(handle, context, parts, results)

    return handle_slices


async def _handle_each(
    handle: "Handler[Any, Any]", context: RequestContext, parts: Iterator[Message], results: str
) -> Message:
    response: Message | None = None
    joined: list[Any] = []
    for part in parts:
        response = await _take_turn(context, partial(handle, context, part))
        joined += getattr(response, results)
    assert response is not None
    return replace(response, **{results: joined})


def serve(context: RequestContext, work: Work[Response]) -> Response | Awaitable[Response]:
    """The response that a generator returns; what takes more than a slice is done in turns."""
    response, results = _advance(work)
    return _serve_others(context, work, results) if response is None else response


async def _serve_others(context: RequestContext, work: Work[Response], results: int) -> Response:
    response: Response | None = None
    while response is None:
        response, added = await _take_turn(context, partial(_advance, work))
        results += added
    return await encoded(context, response, results)


async def encoded(context: RequestContext, response: Response, results: int) -> Response:
    """A response with this number of results, encoded in turns if there are many."""
    if results <= RESULTS_AT_ONCE:
        return response
    encoding = encoded_response(
        response, context.version, flexible=context.api.is_flexible(context.version)
    )
    done = None
    while done is None:
        done, _ = await _take_turn(context, partial(_advance, encoding))
    return cast("Response", done)


def _advance(work: Work[Result]) -> tuple[Result | None, int]:
    """Add a slice of results; returns all of them once they are complete, and how many."""
    results = 0
    try:
        while results < SLICE_RESULTS:
            results += next(work)
    except StopIteration as end:
        return end.value, results
    return None, results


async def each(
    context: RequestContext,
    elements: Sequence[Element],
    handle: Callable[[Sequence[Element]], list[Result] | Awaitable[list[Result]]],
) -> list[Result]:
    """The results of `handle`, which is called with a slice of the elements at a time."""
    results: list[Result] = []
    for start in range(0, len(elements), SLICE_ELEMENTS):
        part = elements[start : start + SLICE_ELEMENTS]
        results += await _take_turn(context, partial(handle, part))
    return results


async def _take_turn(context: RequestContext, serve: Callable[[], Any]) -> Any:
    """Serve one slice, and no other until as much time has passed again."""
    broker = context.broker
    async with broker.slice_turns:
        started = broker.timer()
        returned = serve()
        busy_seconds = broker.timer() - started
        context.busy_seconds += busy_seconds
        await asyncio.sleep(busy_seconds)
    # Not within the turn: what waits for etcd must not keep others waiting.
    return await returned if isawaitable(returned) else returned


def _inner_list(elements: Field, version: int) -> str:
    """The list in each element, such as the partitions of a topic; empty if there is none."""
    inner = inner_message(elements.type)
    names = (
        [field.name for field in fields(inner, version) if isinstance(field.type, Array)]
        if inner
        else []
    )
    return names[0] if names else ""


def _weight(requested: Sequence[Any], inner: str) -> int:
    if not inner:
        return len(requested)
    return sum(1 + len(getattr(element, inner) or ()) for element in requested)


def _split(requested: Sequence[Any], inner: str) -> Iterator[Sequence[Any]]:
    start, weight = 0, 0
    for index, element in enumerate(requested):
        weight += _weight((element,), inner)
        if weight >= SLICE_ELEMENTS:
            yield requested[start : index + 1]
            start, weight = index + 1, 0
    if start < len(requested):
        yield requested[start:]
