"""Declares the routes of the API: path, request and response types, and handler.

    ROUTES = (
        Route("GET", "/topics/{name}", describe, response=TopicDetail),
        Route("POST", "/topics", create, body=CreateTopic, response=Topic),
    )

Requests that change something never use GET. Handlers do not depend on HTTP: they take and return
typed values, and errors become responses in one place.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from kafscale.console.context import ApiContext
from kafscale.errors import InvalidRequestError

Method = Literal["GET", "POST", "PUT", "DELETE"]

SIZE_MAX: Final = 500
PAGE_MAX: Final = 1_000_000

Item = TypeVar("Item")


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


def page_start(page: int, size: int) -> int:
    """The index of the first item of a page; raises an error for an invalid page.

    >>> page_start(1, 50), page_start(3, 50)
    (0, 100)
    """
    if not 1 <= size <= SIZE_MAX:
        raise InvalidRequestError(f"a page has 1 to {SIZE_MAX} items, not {size}")
    if not 1 <= page <= PAGE_MAX:
        raise InvalidRequestError(f"a page number is between 1 and {PAGE_MAX:,}, not {page}")
    return (page - 1) * size


def page_items(items: Sequence[Item], page: int, size: int) -> list[Item]:
    """The items of a page; empty after the last page.

    >>> page_items("abcde", 2, 2), page_items("abcde", 9, 2)
    (['c', 'd'], [])
    """
    first = page_start(page, size)
    return list(items[first : first + size])
