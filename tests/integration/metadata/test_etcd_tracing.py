"""Spans of requests to a real etcd."""

import asyncio
from pathlib import PurePosixPath

import pytest

from kafscale.config.sections.observability import Tracing
from kafscale.metadata.store.base import Put
from kafscale.metadata.store.etcd import EtcdStore
from kafscale.observability import tracing

pytest.importorskip("opentelemetry.sdk")

from services import otlp_collector

pytestmark = pytest.mark.timeout(60)


def test_etcd_request_is_a_child_span(etcd):
    async def scenario():
        store = EtcdStore(etcd.settings())
        try:
            with tracing.span("asker"):
                await store.commit([], [Put("/secret-name", b"secret")])
                await store.get("/secret-name")
        finally:
            await store.close()

    with otlp_collector.running() as collector:
        tracing.start(Tracing(endpoint=collector.url, sample_ratio=1.0), "test")
        try:
            asyncio.run(scenario())
        finally:
            tracing.stop()
    (asker,) = collector.named("asker")
    for name in ("etcd Txn", "etcd Range"):
        span = collector.named(name)[-1]
        assert (span.kind, span.parent_id, span.error) == ("client", asker.span_id, "")
        assert span.attributes["rpc.service"] == "etcdserverpb.KV"
        assert PurePosixPath(span.attributes["server.address"]).name in str(
            etcd.settings().endpoints
        )
    assert "secret" not in repr(collector.spans)
