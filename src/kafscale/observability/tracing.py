"""Tracing: spans of requests and of what they wait for, for an OpenTelemetry collector.

    with tracing.span("etcd KV/Txn", SpanKind.CLIENT, {"server.address": endpoint}):
        ...

Invariants: if tracing is disabled, which is the default, a span is a shared null context, and
OpenTelemetry is not imported. A span is a child of the current span unless that has ended: tasks
and timers inherit the context of their creator and may outlive the request. Spans contain no keys,
values or secrets. Like logging, tracing is global to the process; the application starts and stops
it. `otlp` exports spans.
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
"""The W3C trace context header."""

LINKS_MAX: Final = 64
"""The maximum number of links of one span."""

Value = str | int | float | bool
Attributes = Mapping[str, Value]


class SpanKind(Enum):
    """The role of a span in a call."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"


class Span(Protocol):
    """A timed operation."""

    has_ended: bool

    @property
    def is_sampled(self) -> bool:
        """True if the span is exported."""

    def set(self, name: str, value: Value) -> None: ...

    def end(self, error: str = "") -> None:
        """End the span, with an error type if it failed; further calls are ignored."""

    @property
    def trace_id(self) -> str:
        """The id of the trace in the collector."""

    @property
    def traceparent(self) -> str: ...


class Backend(Protocol):
    """Creates and exports spans."""

    def start_span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        parent: "Span | str | None",
        links: "Sequence[Span]",
    ) -> Span:
        """Start a span, as a child of another span or of a `traceparent`."""

    def close(self) -> None:
        """Export remaining spans, with a short timeout."""


_backend: Backend | None = None
_current: ContextVar[Span | None] = ContextVar("kafscale_span", default=None)


@asynccontextmanager
async def running(settings: Tracing, service_name: str) -> AsyncIterator[None]:
    """Trace inside the block, if tracing is configured, and export remaining spans after it."""
    start(settings, service_name)
    try:
        yield
    finally:
        await asyncio.to_thread(stop)


def start(settings: Tracing, service_name: str) -> None:
    """Start tracing if it is configured."""
    if not settings.endpoint:
        return
    try:
        from kafscale.observability.otlp import OtlpBackend  # noqa: PLC0415 - optional, and slow to import.
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"tracing.endpoint is set, but {error.name} is missing: install it with"
            " pip install 'kafscale[tracing]', or remove the setting"
        ) from None
    set_backend(OtlpBackend(settings, settings.service_name or service_name))


def set_backend(backend: Backend | None) -> None:
    """Use `backend` for new spans; None disables tracing."""
    global _backend  # noqa: PLW0603 - global to the process, like logging.
    _backend = backend


def stop() -> None:
    """Stop tracing and export remaining spans. Blocks: do not call it in an event loop."""
    if (backend := _backend) is not None:
        set_backend(None)
        backend.close()


def is_enabled() -> bool:
    return _backend is not None


def current() -> Span | None:
    """The current span, if it has not ended."""
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
    """Start a span that the caller must end; `parent` defaults to the current span."""
    assert _backend is not None, "tracing is disabled"
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
    """A span for a block; exceptions in `expected` are not recorded as errors."""
    if _backend is None:
        return _NULL_CONTEXT
    return _block(start_span(name, kind, attributes, parent=parent, links=links), expected)


@contextmanager
def use_span(inner: Span) -> Iterator[None]:
    """Make a span the current one inside the block, without ending it."""
    token = _current.set(inner)
    try:
        yield
    finally:
        _current.reset(token)


def inject_context() -> tuple[tuple[str, str], ...]:
    """The trace context for an outgoing gRPC call."""
    span = current() if _backend is not None else None
    return () if span is None else ((TRACEPARENT, span.traceparent),)


def extract_context(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """The trace context of an incoming call, if any."""
    if _backend is None:
        return None
    return next((str(text) for name, text in metadata or () if name == TRACEPARENT), None)


class SpanLinks:
    """Collects the spans that a batched operation is done for."""

    def __init__(self) -> None:
        self._spans: dict[int, Span] = {}

    def add_current(self) -> None:
        span = current()
        if span is not None and span.is_sampled and len(self._spans) < LINKS_MAX:
            self._spans[id(span)] = span

    def take(self) -> list[Span]:
        """Return and clear the collected spans."""
        taken = list(self._spans.values())
        self._spans.clear()
        return taken


def collect_links() -> SpanLinks | None:
    """A collector for batched operations; None if tracing is disabled."""
    return None if _backend is None else SpanLinks()


@contextmanager
def _block(span: Span, expected: tuple[type[BaseException], ...]) -> Iterator[Span]:
    token = _current.set(span)
    try:
        yield span
    except BaseException as error:
        span.end("" if isinstance(error, expected) else type(error).__name__)
        raise
    finally:
        _current.reset(token)
        span.end()


_NULL_CONTEXT: Final = nullcontext()
