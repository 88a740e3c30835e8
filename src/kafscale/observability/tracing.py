"""Traces: what a request waited for, as spans, for a collector of OpenTelemetry.

    with tracing.span("etcd KV/Txn", Kind.CLIENT, {"server.address": endpoint}):
        ...

The laws: switched off, which is the default, a span is a shared nothing, and OpenTelemetry is not
even loaded. A span is a child of the one that it begins in, as long as that goes on: tasks and
timers inherit the context of whoever made them, and may outlive the request by far. No span holds
keys, values or secrets of anybody. Like logging, there is one of it in a process; whoever composes
the process starts and stops it. How spans get to a collector is left to `otlp`.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from contextvars import ContextVar
from enum import Enum
from typing import Final, Protocol

from kafscale.config.sections.observability import Tracing
from kafscale.errors import ConfigError

TRACEPARENT: Final = "traceparent"
"""The header of W3C's trace context."""

LINKS_MAX: Final = 64
"""To how many others one span is linked."""

Value = str | int | float | bool
Attributes = Mapping[str, Value]


class SpanKind(Enum):
    """Which end of a call a span tells of."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class Span(Protocol):
    """Something that takes its time."""

    has_ended: bool

    @property
    def is_sampled(self) -> bool:
        """Whether the collector will hear of it."""

    def set(self, name: str, value: Value) -> None: ...

    def end(self, error: str = "") -> None:
        """Say that it is over, and with which error, if with any; told twice, the first counts."""

    @property
    def trace_id(self) -> str:
        """What finds the trace at the collector."""

    @property
    def traceparent(self) -> str: ...


class Backend(Protocol):
    """Who makes spans, and sends them."""

    def start_span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        parent: "Span | str | None",
        links: "Sequence[Span]",
    ) -> Span:
        """A span that begins now, within another, or within that of a `traceparent`."""

    def close(self) -> None:
        """Send what is there, for a moment at the most."""


_backend: Backend | None = None
_current: ContextVar[Span | None] = ContextVar("kafscale_span", default=None)


@asynccontextmanager
async def running(settings: Tracing, service_name: str) -> AsyncIterator[None]:
    """Trace in a block, if the settings say so, and send what is left after it."""
    start(settings, service_name)
    try:
        yield
    finally:
        await asyncio.to_thread(stop)


def start(settings: Tracing, service_name: str) -> None:
    """Trace from now on, if the settings say so."""
    if not settings.endpoint:
        return
    try:
        from kafscale.observability.otlp import OtlpBackend  # noqa: PLC0415 - an extra, and slow.
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"tracing.endpoint is set, but {error.name} is missing: install it with"
            " pip install 'kafscale[tracing]', or remove the setting"
        ) from None
    set_backend(OtlpBackend(settings, settings.service_name or service_name))


def set_backend(backend: Backend | None) -> None:
    """Make spans by `backend` from now on; None switches tracing off."""
    global _backend  # noqa: PLW0603 - there is one in a process, as of logging.
    _backend = backend


def stop() -> None:
    """Trace no more, and send what is there. It may take a moment: not for an event loop."""
    if (backend := _backend) is not None:
        set_backend(None)
        backend.close()


def is_enabled() -> bool:
    return _backend is not None


def current() -> Span | None:
    """The span that goes on here, if any."""
    span = _current.get()
    return None if span is None or span.has_ended else span


def start_span(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes | None = None,
    *,
    parent: Span | str | None = None,
    links: Sequence[Span] = (),
) -> Span:
    """A span that somebody has to end; a child of the current one, unless a parent is named."""
    assert _backend is not None, "nobody asks for spans while tracing is off"
    return _backend.start_span(name, kind, attributes or {}, parent or current(), links)


def span(
    name: str,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Attributes | None = None,
    *,
    parent: Span | str | None = None,
    links: Sequence[Span] = (),
    expected: tuple[type[BaseException], ...] = (),
) -> AbstractContextManager[Span | None]:
    """A span for the length of a block; `expected` are raised there without being errors."""
    if _backend is None:
        return _NOTHING
    return _block(start_span(name, kind, attributes, parent=parent, links=links), expected)


@contextmanager
def use_span(inner: Span) -> Iterator[None]:
    """Make a span the current one in a block, without ending it there."""
    token = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(token)


def inject_context() -> tuple[tuple[str, str], ...]:
    """The trace context for a call to another process, as gRPC takes it."""
    span = current() if _backend is not None else None
    return () if span is None else ((TRACEPARENT, span.traceparent),)


def extract_context(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """The trace context that has come with a call, if any."""
    if _backend is None:
        return None
    return next((str(text) for name, text in metadata or () if name == TRACEPARENT), None)


class SpanLinks:
    """The spans on whose behalf something is done that is done for many at once."""

    def __init__(self) -> None:
        self._spans: dict[int, Span] = {}

    def add_current(self) -> None:
        """The current span is one more of them."""
        span = current()
        if span is not None and span.is_sampled and len(self._spans) < LINKS_MAX:
            self._spans[id(span)] = span

    def take(self) -> list[Span]:
        """All of them so far; from now on, others."""
        taken = list(self._spans.values())
        self._spans.clear()
        return taken


def collect_links() -> SpanLinks | None:
    """Notes for somebody who works for many; None while tracing is off, so that it costs none."""
    return None if _backend is None else SpanLinks()


@contextmanager
def _block(made: Span, expected: tuple[type[BaseException], ...]) -> Iterator[Span]:
    token = _current.set(made)
    try:
        yield made
    except BaseException as error:
        made.end("" if isinstance(error, expected) else type(error).__name__)
        raise
    finally:
        _current.reset(token)
        made.end()


_NOTHING: Final = nullcontext()
