"""How a route of the API is declared: its path, what it takes and gives, and who answers it.

    ROUTES = (
        Route("GET", "/topics/{name}", describe, gives=TopicDetail),
        Route("POST", "/topics", create, takes=CreateTopic, gives=Topic),
    )

The law: whatever changes something is not a GET. Handlers know nothing of HTTP: they get what was
asked, typed, and give what is told, typed; an error of ours becomes an answer in one place.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kafscale.console.context import Room

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True)
class Call:
    """One request: the parts of its path that have names, its query and its body, typed."""

    path: Mapping[str, str]
    query: Any = None
    body: Any = None


Handler = Callable[[Room, Call], Awaitable[Any]]


@dataclass(frozen=True)
class Route:
    """One thing that can be asked for; without `gives`, the answer has no content."""

    method: Method
    path: str
    handle: Handler
    gives: Any = None
    takes: Any = None
    query: Any = None
    tags: tuple[str, ...] = field(default=())
