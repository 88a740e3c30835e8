"""Broker metrics: declarations and scrapes agree, and instances are independent."""

import pytest

import kafscale
from kafscale.observability.metrics.broker import ADMIN_APIS, BROKER_METRICS, Metrics
from kafscale.observability.metrics.counters import ClusterStatus, CompactionStatus, DatabaseSpace
from kafscale.protocol.apis import BY_NAME
from unit.observability.scraping import scrape, values


@pytest.fixture
def busy():
    """Metrics of a process that has had something of everything."""
    metrics = Metrics()
    metrics.requests("Produce", 9).answered(0.02)
    metrics.requests("CreateTopics", 7).refused("POLICY_VIOLATION", 0.3)
    metrics.partition("orders", 0).produces_succeeded += 1
    metrics.topic("orders").produced(-1, 0.02)
    metrics.topic("orders").fetched(True, 0.02)
    metrics.operation("put").observe(0.2, succeeded=True)
    metrics.group("readers").commits += 1
    metrics.access.logged_in("PLAIN", succeeded=False)
    metrics.access.throttled["producer_byte_rate"] = 1
    metrics.certificates = lambda: [("tls.certFile", "server.crt", 1_900_000_000.0)]
    metrics.clients.pushed("librdkafka")
    metrics.clients.add("librdkafka", "org.apache.kafka.producer.connection.creation.total", 2.0)
    metrics.clients.observe("librdkafka", "org.apache.kafka.producer.request.latency.avg", 0.5)
    metrics.group_states = lambda: {"Stable": 1}
    metrics.cluster = lambda: ClusterStatus(3, True, True, 12, 17)
    metrics.etcd_space = lambda: DatabaseSpace(
        is_full=False, used_share=0.5, used_bytes=1, quota_bytes=2
    )
    metrics.group_lags = lambda: [("readers", "orders", 0, 3)]
    metrics.stored_bytes = lambda: [("orders", 0, 4096)]
    metrics.buffered_bytes = lambda: [("orders", 0, 17)]
    metrics.compaction = lambda: CompactionStatus(dirty_ratios={"orders": 0.5})
    metrics.transaction_states = lambda: {"Ongoing": 2}
    metrics.open_transactions = lambda: [("orders", 0, 1.5)]
    return metrics


def test_version_is_exposed():
    assert values(Metrics(), "kafscale_build_info") == {(kafscale.__version__,): 1}


def test_scrape_equals_the_declarations(busy):
    shown = {(family.name, family.type, family.documentation) for family in scrape(busy)}
    assert shown == {(d.name.removesuffix("_total"), d.type, d.meaning) for d in BROKER_METRICS}
    assert len(shown) == len(BROKER_METRICS)


def test_series_have_the_declared_labels(busy):
    for declared, family in zip(BROKER_METRICS, scrape(busy), strict=True):
        assert family.samples, declared.name
        for sample in family.samples:
            assert tuple(name for name in sample.labels if name != "le") == declared.labels


def test_only_counters_end_in_total():
    for declared in BROKER_METRICS:
        assert declared.name.endswith("_total") == (declared.type == "counter"), declared.name


def test_instances_are_independent():
    one, other = Metrics(), Metrics()
    one.connections.active = 3
    assert values(one, "kafscale_active_connections") == {(): 3}
    assert values(other, "kafscale_active_connections") == {(): 0}


def test_requests_are_counted_by_error(busy):
    busy.requests("Produce", 9).refused("REQUEST_TIMED_OUT", 0.4)
    assert values(busy, "kafscale_requests_total") == {
        ("Produce", "9", "NONE"): 1,
        ("Produce", "9", "REQUEST_TIMED_OUT"): 1,
        ("CreateTopics", "7", "NONE"): 0,
        ("CreateTopics", "7", "POLICY_VIOLATION"): 1,
    }
    assert values(busy, "kafscale_request_seconds_count") == {("Produce",): 2, ("CreateTopics",): 1}


def test_admin_requests_are_counted_by_existing_api_names(busy):
    assert values(busy, "kafscale_admin_requests_total")["CreateTopics",] == 1
    assert set(BY_NAME) >= set(ADMIN_APIS)


def test_partition_requests_are_counted_by_result():
    metrics = Metrics()
    one = metrics.partition("orders", 0)
    assert metrics.partition("orders", 0) is one
    one.produces_succeeded, one.produces_failed, one.produce_bytes = 5, 1, 700
    one.fetches_succeeded, one.fetches_failed, one.fetch_bytes = 4, 2, 900
    one.cache_hits, one.cache_misses = 3, 1
    metrics.buffered_bytes = lambda: [("orders", 0, 50)]
    expected = {
        "kafscale_produce_requests_total": {("success",): 5, ("error",): 1},
        "kafscale_fetch_requests_total": {("success",): 4, ("error",): 2},
        "kafscale_produce_bytes_total": {(): 700},
        "kafscale_fetch_bytes_total": {(): 900},
        "kafscale_cache_hit_rate": {(): 0.75},
        "kafscale_buffer_size_bytes": {(): 50},
    }
    for name, series in expected.items():
        assert values(metrics, name) == {("orders", "0", *key): n for key, n in series.items()}


def test_hit_rate_of_an_unread_partition_is_zero():
    metrics = Metrics()
    metrics.partition("orders", 0)
    assert values(metrics, "kafscale_cache_hit_rate") == {("orders", "0"): 0}


def test_removed_counters_are_not_exposed():
    metrics = Metrics()
    for topic in ("orders", "payments"):
        metrics.topic(topic).produced(1, 0.1)
        metrics.partition(topic, 0)
    metrics.forget_topic("payments")
    metrics.forget_topic("unknown")
    assert list(values(metrics, "kafscale_produce_bytes_total")) == [("orders", "0")]
    assert list(values(metrics, "kafscale_produce_latency_seconds_count")) == [("orders", "1")]


def test_latencies_are_labelled_by_acks_and_cache_hit():
    metrics = Metrics()
    for acks in (-1, -1, 1):
        metrics.topic("orders").produced(acks, 0.02)
    for hit in (True, False):
        metrics.topic("orders").fetched(hit, 0.02)
    assert values(metrics, "kafscale_produce_latency_seconds_count") == {
        ("orders", "-1"): 2,
        ("orders", "1"): 1,
    }
    assert values(metrics, "kafscale_fetch_latency_seconds_count") == {
        ("orders", "true"): 1,
        ("orders", "false"): 1,
    }
    buckets = values(metrics, "kafscale_fetch_latency_seconds_bucket")
    bounds = [le for _, hit, le in buckets if hit == "true"]
    requested = "0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 +Inf"
    assert " ".join(bounds) == requested


def test_store_requests_are_counted_by_operation_and_result():
    metrics = Metrics()
    metrics.operation("put").observe(0.02, succeeded=True)
    metrics.operation("put").observe(20, succeeded=False)
    assert values(metrics, "kafscale_s3_operations_total") == {
        ("put", "success"): 1,
        ("put", "error"): 1,
    }
    buckets = values(metrics, "kafscale_s3_latency_seconds_bucket")
    bounds = [le for _, le in buckets]
    assert bounds == ["0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf"]
    assert (buckets["put", "0.025"], buckets["put", "10"], buckets["put", "+Inf"]) == (1, 1, 2)


def test_store_health_has_one_state():
    metrics = Metrics()
    metrics.store_health.state = "degraded"
    metrics.store_health.error_rate = 0.25
    assert values(metrics, "kafscale_s3_health_state") == {
        ("healthy",): 0,
        ("degraded",): 1,
        ("unavailable",): 0,
    }
    assert values(metrics, "kafscale_s3_error_rate") == {(): 0.25}


def test_rates_and_uptime_use_the_clock():
    now = [1000.0]
    metrics = Metrics(timer=lambda: now[0])
    for _ in range(50):
        metrics.requests("Produce", 9).answered(0.01)
    now[0] += 10
    assert values(metrics, "kafscale_broker_uptime_seconds") == {(): 10}
    assert values(metrics, "kafscale_produce_requests_per_second") == {(): 5}
    assert values(metrics, "kafscale_produce_rps") == {(): 5}
    assert values(metrics, "kafscale_fetch_rps") == {(): 0}


def test_all_log_counters_are_exposed():
    metrics = Metrics()
    for number, name in enumerate(type(metrics.log).__slots__, 1000):
        setattr(metrics.log, name, number)
    shown = {sample.value for family in scrape(metrics) for sample in family.samples}
    assert shown >= set(range(1000, 1000 + len(type(metrics.log).__slots__)))
