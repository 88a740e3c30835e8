"""`route`: one API tied to the code that serves it.

    route(HEARTBEAT, heartbeat.handle)
    route(FETCH, fetch.handle, fetch.refuse, brings_time_limit=True, ends_with_client=True)

The law: a type checker holds a handler to the messages of its API, and no route exists that could
not say no: where the answer has no error code of its own in every version, `refuse` has to be
given. What a route's fields lead to is left to `dispatch`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.protocol.api import Api, Request, Response
from kafscale.protocol.codec.schema import fields
from kafscale.protocol.codec.wire import Message

Handler = Callable[[RequestContext, Request], Response | Awaitable[Response | None] | None]
"""Serves a request: its answer, or something to await for it; None is no answer at all.

What a handler does before it returns is done in the order in which a connection's requests came.
Returning a future is cheaper than being a coroutine, which needs a task of its own.
"""

Refusal = Callable[[RequestContext, Request, KafscaleError], Response | None]
"""The answer that carries an error's code in its body; None closes the connection instead, which
is how a client that awaits no answer (Produce with acks=0) learns of an error."""


@dataclass(frozen=True, slots=True)
class Route:
    """How one API is served. Made by `route`, which checks types that are erased here."""

    api: Api[Any, Any]
    handle: Handler[Any, Any]
    refuse: Refusal[Any, Any]
    brings_time_limit: bool
    """The request says itself how long it may wait; the broker's limit is not for it."""
    ends_with_client: bool
    """The request only waits and reads, so that it ends when its client goes away."""


def route(
    api: Api[Request, Response],
    handle: Handler[Request, Response],
    refuse: Refusal[Request, Response] | None = None,
    *,
    brings_time_limit: bool = False,
    ends_with_client: bool = False,
) -> Route:
    """Tie an API to its handler; without `refuse`, the answer's own error code says no."""
    assert refuse is not None or _has_error_code(api), f"{api.name} needs a refusal of its own"
    return Route(api, handle, refuse or _refuse, brings_time_limit, ends_with_client)


def _has_error_code(api: Api[Any, Any]) -> bool:
    response: type[Message] = api.response
    return all(
        any(field.name == "error_code" for field in fields(response, version))
        for version in api.versions
    )


def _refuse(context: RequestContext, _request: Message, error: KafscaleError) -> Any:
    told: dict[str, Any] = {"error_code": error.code}
    if "error_message" in context.api.response.__struct_fields__:
        told["error_message"] = str(error)
    return context.api.response(**told)
