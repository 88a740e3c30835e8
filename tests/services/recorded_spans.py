"""A tracing backend that records spans in memory, for tests without a collector."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafscale.observability import tracing


@dataclass
class RecordedSpan:
    """A span that is not exported."""

    name: str
    parent: "RecordedSpan | str | None" = None
    links: tuple = ()
    attributes: dict = field(default_factory=dict)
    is_sampled: bool = True
    has_ended: bool = False
    error: str = ""

    def set(self, name, value):
        self.attributes[name] = value

    def end(self, error=""):
        if not self.has_ended:
            self.has_ended, self.error = True, error

    @property
    def trace_id(self):
        return f"trace of {self.name}"

    @property
    def traceparent(self):
        return f"00-{self.name}"


class SpanRecorder:
    """Creates and records spans."""

    def __init__(self):
        self.spans = []
        self.is_closed = False

    def start_span(self, name, _kind, attributes, parent, links):
        self.spans.append(RecordedSpan(name, parent, tuple(links), dict(attributes)))
        return self.spans[-1]

    def close(self):
        self.is_closed = True

    def parents_by_name(self):
        return [
            (span.name, span.parent.name if isinstance(span.parent, RecordedSpan) else span.parent)
            for span in self.spans
        ]


@contextmanager
def record_spans() -> Iterator[SpanRecorder]:
    """Record spans while the block runs."""
    recorder = SpanRecorder()
    tracing.set_backend(recorder)
    try:
        yield recorder
    finally:
        tracing.set_backend(None)
