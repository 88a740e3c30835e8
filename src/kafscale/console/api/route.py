"""Declares the routes of the API: path, types, and handler; and what handlers depend on.

    ROUTES = (
        Route("GET", "/topics/{name}", describe, response=TopicDetail),
        Route("POST", "/topics", create, body=CreateTopic, response=Topic),
    )

Requests that change something never use GET. Handlers do not depend on HTTP: they take and return
typed values, and errors become responses in one place.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal, TypeVar

from kafscale.admin import jobs
from kafscale.admin.connection import ClusterConnections
from kafscale.aio.clock import clock
from kafscale.config import Config
from kafscale.console.monitor.poller import ClusterMonitor
from kafscale.errors import InvalidRequestError
from kafscale.storage.job_runs import JobRun

Method = Literal["GET", "POST", "PUT", "DELETE"]

SIZE_MAX: Final = 500
PAGE_MAX: Final = 1_000_000

Item = TypeVar("Item")

CACHE_SECONDS: Final = 15.0
READ_SECONDS_MAX: Final = 20.0


@dataclass
class JobRunCache:
    """Caches the runs of pipeline jobs, to limit reads of the bucket.

    Concurrent callers wait for one read.
    """

    connections: ClusterConnections
    _runs: dict[str, list[JobRun]] = field(default_factory=dict)
    _read_at: float = float("-inf")
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def by_job(self) -> dict[str, Sequence[JobRun]]:
        """The runs of each job, newest first."""
        async with self._lock:
            if time.monotonic() - self._read_at > CACHE_SECONDS:
                async with asyncio.timeout(READ_SECONDS_MAX):
                    self._runs = await jobs.recent_runs(self.connections, clock())
                self._read_at = time.monotonic()
            return dict(self._runs)


@dataclass(frozen=True)
class ApiContext:
    """Created once, when the console starts."""

    config: Config
    connections: ClusterConnections
    monitor: ClusterMonitor

    @cached_property
    def job_runs(self) -> JobRunCache:
        """The runs of pipeline jobs."""
        return JobRunCache(self.connections)


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
