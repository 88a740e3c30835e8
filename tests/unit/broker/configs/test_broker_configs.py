"""Broker configs: true values, no secrets."""

import pytest

from doubles import virtual_time
from doubles.memory_store import MemoryStore
from kafscale.broker.configs import broker_configs, dynamic_configs
from kafscale.broker.configs.live_settings import LiveSettings
from kafscale.config import Config
from kafscale.config.sections.broker import Topics
from kafscale.config.sections.etcd import Etcd
from kafscale.config.sections.groups import Group, Offsets
from kafscale.config.sections.s3 import S3
from kafscale.config.sections.storage import Cache, Storage
from kafscale.metadata.configs.store import ConfigStore
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType

CONFIG = Config(
    s3=S3(bucket="records", region="eu-west-1", access_key="AKIA", secret_key="hidden"),  # noqa: S106
    etcd=Etcd(password="whisper"),  # noqa: S106
    cache=Cache(segment_cache_bytes=123456),
    storage=Storage(segment_bytes=5000, flush_interval_ms=77),
    group=Group(size_max=50, consumer_assignors=("range", "uniform")),
    offsets=Offsets(retention_minutes=60),
    topics=Topics(auto_create=False, auto_create_partitions=6),
    origins={"storage.segmentBytes": "KAFSCALE_SEGMENT_BYTES", "cache.segmentCacheSize": "x:1"},
)


def rows_of(config):
    settings = LiveSettings(config, ConfigStore(MemoryStore(virtual_time.clock_ms)), broker_id=3)
    return broker_configs.describe(
        settings, broker_id=3, advertised_listeners="PLAINTEXT://broker-3:9092"
    )


def describe(config=CONFIG):
    return {row.name: row for row in rows_of(config)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("broker.id", "3"),
        ("node.id", "3"),
        ("advertised.listeners", "PLAINTEXT://broker-3:9092"),
        ("kafscale.s3.bucket", "records"),
        ("kafscale.s3.region", "eu-west-1"),
        ("kafscale.s3.endpoint", ""),
        ("kafscale.cache.bytes", "123456"),
        ("kafscale.readahead.segments", "3"),
        ("kafscale.segment.bytes", "5000"),
        ("kafscale.flush.interval.ms", "77"),
        ("auto.create.topics.enable", "false"),
        ("num.partitions", "6"),
        ("default.replication.factor", "1"),
        ("message.max.bytes", "1048588"),
        ("log.retention.ms", "604800000"),
        ("log.segment.bytes", "5000"),
        ("compression.type", "snappy"),
        ("socket.request.max.bytes", "104857600"),
        ("group.initial.rebalance.delay.ms", "3000"),
        ("group.min.session.timeout.ms", "6000"),
        ("group.max.session.timeout.ms", "1800000"),
        ("group.max.size", "50"),
        ("group.coordinator.append.linger.ms", "5"),
        ("group.consumer.session.timeout.ms", "45000"),
        ("group.consumer.heartbeat.interval.ms", "5000"),
        ("group.consumer.max.size", "2147483647"),
        ("group.consumer.assignors", "range,uniform"),
        ("group.consumer.migration.policy", "bidirectional"),
        ("offsets.retention.minutes", "60"),
        ("offsets.retention.check.interval.ms", "600000"),
        ("offset.metadata.max.bytes", "4096"),
        ("producer.id.expiration.ms", "86400000"),
        ("transaction.max.timeout.ms", "900000"),
        ("transaction.partition.verification.enable", "true"),
        ("transaction.remove.expired.transaction.cleanup.interval.ms", "3600000"),
        ("transactional.id.expiration.ms", "604800000"),
    ],
)
def test_broker_configs_have_the_values_of_the_settings(name, value):
    assert describe()[name].value == value


def test_broker_configs_are_documented_and_unique():
    rows = rows_of(CONFIG)
    assert [row.name for row in rows] == sorted({row.name for row in rows})
    for row in rows:
        assert row.read_only == (row.name not in dynamic_configs.NAMES)
        assert row.documentation.endswith(".")
        assert row.type != ConfigType.UNKNOWN
        assert (row.value, row.source) == (row.synonyms[0].value, row.synonyms[0].source)
        assert row.synonyms[-1].source in {ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT}


def test_broker_config_source_is_static_if_set():
    rows = describe()
    for name in ("log.segment.bytes", "kafscale.segment.bytes", "kafscale.cache.bytes"):
        assert rows[name].source == ConfigSource.STATIC_BROKER
        assert not rows[name].is_default
    for name in ("kafscale.flush.interval.ms", "log.retention.ms", "broker.id"):
        assert rows[name].source == ConfigSource.DEFAULT
        assert rows[name].is_default


def test_broker_configs_contain_no_secrets():
    shown = repr(describe())
    assert "records" in shown
    for secret in ("AKIA", "hidden", "whisper"):
        assert secret not in shown
