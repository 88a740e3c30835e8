"""Spans that are kept where they are made, for tests that need no collector."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafscale.observability import tracing


@dataclass
class Noted:
    """A span that nobody hears of."""

    name: str
    parent: "Noted | str | None" = None
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


class Notes:
    """Makes spans, and keeps them."""

    def __init__(self):
        self.spans = []
        self.is_closed = False

    def start_span(self, name, _kind, attributes, parent, links):
        self.spans.append(Noted(name, parent, tuple(links), dict(attributes)))
        return self.spans[-1]

    def close(self):
        self.is_closed = True

    def family(self):
        return [
            (span.name, span.parent.name if isinstance(span.parent, Noted) else span.parent)
            for span in self.spans
        ]


@contextmanager
def noted() -> Iterator[Notes]:
    """Trace in a block."""
    made = Notes()
    tracing.set_backend(made)
    try:
        yield made
    finally:
        tracing.set_backend(None)
