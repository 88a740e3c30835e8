"""Declares the routes of the API: path, request and response types, and handler.

    ROUTES = (
        Route("GET", "/topics/{name}", describe, response=TopicDetail),
        Route("POST", "/topics", create, body=CreateTopic, response=Topic),
    )

Requests that change something never use GET. Handlers do not depend on HTTP: they take and return
typed values, and errors become responses in one place.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kafscale.console.context import ApiContext
from kafscale.errors import InvalidRequestError

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True)
class ApiRequest:
    """A request: path parameters, query and body, typed."""

    path: Mapping[str, str]
    query: Any = None
    body: Any = None


Handler = Callable[[ApiContext, ApiRequest], Awaitable[Any]]


@dataclass(frozen=True)
class Route:
    """One route; without `response`, the response has no content."""

    method: Method
    path: str
    handle: Handler
    response: Any = None
    body: Any = None
    query: Any = None
    tags: tuple[str, ...] = field(default=())


def check_confirmation(subject: str, name: str, entered: str) -> None:
    """Destructive requests must repeat the name of the resource."""
    if entered != name:
        raise InvalidRequestError(f"to delete {subject}, repeat its name exactly to confirm")
