"""The tracing backend: OpenTelemetry's SDK, which exports spans by OTLP over HTTP in a thread.

Nothing waits for the collector: the queue is bounded, and spans that do not fit are dropped.
Options without a setting, such as headers and certificates, are read from OpenTelemetry's variables
(`OTEL_EXPORTER_OTLP_HEADERS` and so on).
"""

import logging
import threading
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

import kafscale
from kafscale.config.sections.observability import Tracing
from kafscale.observability import tracing
from kafscale.observability.tracing import TRACEPARENT, Attributes, SpanKind, Value

SPANS_MAX: Final = 4096
"""The size of the export queue; further spans are dropped."""
BATCH_SPANS_MAX: Final = 512
SEND_INTERVAL_MS: Final = 1000
SEND_S_MAX: Final = 5.0
CLOSE_S_MAX: Final = 2.0
"""How long a shutdown waits for the export of remaining spans."""
TRACES_PATH: Final = "/v1/traces"

_KINDS: Final = {
    SpanKind.INTERNAL: trace.SpanKind.INTERNAL,
    SpanKind.SERVER: trace.SpanKind.SERVER,
    SpanKind.CLIENT: trace.SpanKind.CLIENT,
}
_PROPAGATOR: Final = TraceContextTextMapPropagator()


class OtlpSpan:
    """A span of the SDK that knows whether it has ended."""

    __slots__ = ("has_ended", "inner")

    def __init__(self, inner: trace.Span) -> None:
        self.inner = inner
        self.has_ended = False

    @property
    def is_sampled(self) -> bool:
        return self.inner.get_span_context().trace_flags.sampled

    def set(self, name: str, value: Value) -> None:
        self.inner.set_attribute(name, value)

    def end(self, error: str = "") -> None:
        if self.has_ended:
            return
        self.has_ended = True
        if error:
            self.inner.set_attribute("error.type", error)
            self.inner.set_status(trace.StatusCode.ERROR, error)
        self.inner.end()

    @property
    def trace_id(self) -> str:
        return trace.format_trace_id(self.inner.get_span_context().trace_id)

    @property
    def traceparent(self) -> str:
        carrier: dict[str, str] = {}
        _PROPAGATOR.inject(carrier, trace.set_span_in_context(self.inner))
        return carrier[TRACEPARENT]


class OtlpBackend:
    """Creates spans and exports them to a collector."""

    def __init__(self, settings: Tracing, service_name: str) -> None:
        # It logs every attempt; a lost batch is enough.
        logging.getLogger("opentelemetry").setLevel(logging.ERROR)
        resource = {"service.name": service_name, "service.version": kafscale.__version__}
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(settings.sample_ratio)),
            resource=Resource.create(resource),
            shutdown_on_exit=False,  # Stopped by `close`.
        )
        exporter = OTLPSpanExporter(endpoint=traces_url(settings.endpoint), timeout=SEND_S_MAX)
        self._provider.add_span_processor(
            BatchSpanProcessor(
                exporter,
                max_queue_size=SPANS_MAX,
                max_export_batch_size=BATCH_SPANS_MAX,
                schedule_delay_millis=SEND_INTERVAL_MS,
            )
        )
        self._tracer = self._provider.get_tracer("kafscale", kafscale.__version__)

    def start_span(
        self,
        name: str,
        kind: SpanKind,
        attributes: Attributes,
        parent: tracing.Span | str | None,
        links: Sequence[tracing.Span],
    ) -> OtlpSpan:
        return OtlpSpan(
            self._tracer.start_span(
                name,
                context=_context(parent),
                kind=_KINDS[kind],
                attributes=dict(attributes),
                links=[
                    trace.Link(link.inner.get_span_context())
                    for link in links
                    if isinstance(link, OtlpSpan)
                ],
            )
        )

    def close(self) -> None:
        # An unresponsive collector would delay the shutdown once per batch.
        closing = threading.Thread(target=self._provider.shutdown, name="closing", daemon=True)
        closing.start()
        closing.join(CLOSE_S_MAX)


def traces_url(endpoint: str) -> str:
    """The URL for traces of a collector.

    >>> traces_url("http://collector:4318")
    'http://collector:4318/v1/traces'
    >>> traces_url("https://example.com/otlp/v1/traces")
    'https://example.com/otlp/v1/traces'
    """
    has_path = urlsplit(endpoint).path.strip("/")
    return endpoint if has_path else endpoint.rstrip("/") + TRACES_PATH


def _context(parent: tracing.Span | str | None) -> Context:
    """The parent context of a span; never the SDK's implicit current context."""
    if isinstance(parent, OtlpSpan):
        return trace.set_span_in_context(parent.inner, _EMPTY_CONTEXT)
    if isinstance(parent, str):
        return _PROPAGATOR.extract({TRACEPARENT: parent}, _EMPTY_CONTEXT)
    return _EMPTY_CONTEXT


_EMPTY_CONTEXT: Final = Context()
