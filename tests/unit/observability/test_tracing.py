"""Tracing: no overhead when disabled, and correct parents when enabled."""

import asyncio
import io
import json
import logging
import sys

import pytest

from kafscale.config.sections.observability import Tracing
from kafscale.errors import ConfigError, ObjectNotFoundError
from kafscale.observability import tracing
from kafscale.observability.logging import configure, get_logger
from kafscale.observability.tracing import LINKS_MAX, SpanKind
from kafscale.storage.objects.layers.observed import ObservedObjectStore
from kafscale.storage.objects.memory import MemoryObjectStore
from services.recorded_spans import record_spans


@pytest.fixture
def recorder():
    with record_spans() as recorder:
        yield recorder


def test_disabled_tracing_creates_no_spans():
    tracing.start(Tracing(), "x")
    assert not tracing.is_enabled()
    with tracing.span("a") as span:
        assert span is None
        assert tracing.current() is None
        assert tracing.inject_context() == ()
    assert tracing.span("a") is tracing.span("b", SpanKind.CLIENT), "one nothing for all"
    assert tracing.extract_context([("traceparent", "00-x")]) is None
    assert tracing.collect_links() is None
    tracing.stop()


def test_span_is_a_child_of_the_enclosing_span(recorder):
    with tracing.span("a"):
        with tracing.span("b"):
            pass
        with tracing.span("c"):
            pass
    with tracing.span("d"):
        pass
    assert recorder.parents_by_name() == [("a", None), ("b", "a"), ("c", "a"), ("d", None)]
    assert all(span.has_ended and not span.error for span in recorder.spans)


def test_tasks_inherit_the_span_until_it_ends(recorder):
    async def scenario():
        may_end = asyncio.Event()

        async def outlive():
            with tracing.span("during"):
                pass
            await may_end.wait()
            with tracing.span("after"):
                pass

        with tracing.span("request"):
            task = asyncio.create_task(outlive())
            await asyncio.sleep(0)
        may_end.set()
        await task

    asyncio.run(scenario())
    assert recorder.parents_by_name() == [("request", None), ("during", "request"), ("after", None)]


def test_exception_is_an_error_unless_expected(recorder):
    with pytest.raises(ValueError, match="x"), tracing.span("a"):
        raise ValueError("x")
    with pytest.raises(KeyError), tracing.span("b", expected=(KeyError,)):
        raise KeyError
    assert [span.error for span in recorder.spans] == ["ValueError", ""]
    assert all(span.has_ended for span in recorder.spans)


def test_trace_context_is_propagated_with_calls(recorder):
    assert tracing.inject_context() == ()
    with tracing.span("a"):
        metadata = tracing.inject_context()
    assert metadata == (("traceparent", "00-a"),)
    with tracing.span("b", parent=tracing.extract_context([("user-agent", "x"), *metadata])):
        pass
    assert tracing.extract_context(None) is None
    assert recorder.parents_by_name()[-1] == ("b", "00-a")


def test_span_links_are_bounded(recorder):
    causes = tracing.collect_links()
    causes.add_current()
    for number in range(LINKS_MAX + 5):
        with tracing.span(f"request {number}"):
            causes.add_current()
            causes.add_current()
    with tracing.span("unsampled"):
        recorder.spans[-1].is_sampled = False
        causes.add_current()
    taken = causes.take()
    assert [span.name for span in taken] == [f"request {number}" for number in range(LINKS_MAX)]
    assert causes.take() == []


def test_object_store_request_is_one_span(recorder):
    async def scenario():
        store = ObservedObjectStore(MemoryObjectStore(), lambda *_: None)
        with tracing.span("request"):
            await store.put("a/b", [b"12345"])
            await store.get("a/b")
            with pytest.raises(ObjectNotFoundError):
                await store.head("a/c")
            assert [chunk async for chunk in store.list("a/")]
            await store.delete(["a/b"])

    asyncio.run(scenario())
    operations = ["put", "get", "head", "list", "list", "delete"]
    expected = [(f"objects {name}", "request") for name in operations]
    assert recorder.parents_by_name()[1:] == expected
    assert recorder.spans[2].attributes == {
        "kafscale.object.key": "a/b",
        "kafscale.object.bytes": 5,
    }
    assert [span.error for span in recorder.spans] == [""] * 7
    assert all(span.has_ended for span in recorder.spans)


def test_stop_exports_remaining_spans(recorder):
    tracing.stop()
    assert recorder.is_closed
    assert not tracing.is_enabled()


def test_missing_extra_is_named_in_the_error(monkeypatch):
    monkeypatch.delitem(sys.modules, "kafscale.observability.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ConfigError, match=r"pip install 'kafscale\[tracing\]'"):
        tracing.start(Tracing(endpoint="http://localhost:4318"), "x")
    assert not tracing.is_enabled()


def test_log_events_have_the_trace_id(recorder):
    logging.getLogger().handlers = []
    stream = io.StringIO()
    configure("info", "json", stream)
    with tracing.span("request"):
        get_logger("x").info("within")
    get_logger("x").info("outside")
    within, outside = map(json.loads, stream.getvalue().splitlines())
    assert within["trace_id"] == recorder.spans[0].trace_id
    assert "trace_id" not in outside
