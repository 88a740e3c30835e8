"""Metrics and health endpoints, as Prometheus and the kubelet use them."""

import re

from services.wire import batch_of


def test_serving_broker_is_healthy_and_ready(broker):
    for path in ("/healthz", "/health"):
        assert broker.http(path)[0] == 200
    assert broker.http("/readyz")[0] == 200
    assert broker.ready() == {"ready": True, "reasons": {}, "warnings": {}}
    assert broker.http("/no-such-page")[0] == 404


def test_metrics_count_requests(broker, wire, topic):
    def sums_by_name() -> dict[str, float]:
        status, text = broker.http("/metrics")
        assert status == 200
        samples = re.findall(r"^(kafscale_\w+)(?:\{[^}]*\})? ([-+.e0-9]+)$", text, re.MULTILINE)
        sums: dict[str, float] = {}
        for name, value in samples:
            sums[name] = sums.get(name, 0) + float(value)
        return sums

    wire.create(topic)
    before = sums_by_name()
    for _ in range(10):
        wire.produce(topic, batch_of([b"value"] * 5))
    wire.read(topic)
    after = sums_by_name()
    grown = {name for name, value in after.items() if value > before.get(name, 0)}
    assert any("produce" in name for name in grown), grown
    assert any("fetch" in name for name in grown), grown
