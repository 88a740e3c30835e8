"""Dynamic broker configs: precedence, persistence, and what reads them."""

import asyncio

import pytest

from doubles import virtual_time
from kafscale.broker.configs.changes import Operation
from kafscale.broker.configs.live_settings import ALL_BROKERS
from kafscale.broker.configs.resources import ResourceType
from kafscale.metadata.configs.model import ConfigEntity, EntityKind, encode_configs
from kafscale.metadata.store.base import Put
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from unit.broker.in_memory_broker import NODE_ID, Stores, run_with_broker, running_broker

BROKER, GROUP = ResourceType.BROKER, ResourceType.GROUP
THIS, ALL = str(NODE_ID), ""


async def change(broker, kind, name, **configs):
    """Set configs, written with underscores for dots; None deletes one."""
    operations = [
        ConfigToAlter(
            config.replace("_", "."),
            Operation.DELETE if value is None else Operation.SET,
            None if value is None else str(value),
        )
        for config, value in configs.items()
    ]
    request = IncrementalAlterConfigsRequest([ResourceToAlter(kind, name, operations)])
    [result] = (await broker.ask(INCREMENTAL_ALTER_CONFIGS, request)).resources
    return result.error_code


def test_this_broker_comes_before_all_brokers_and_both_before_the_settings():
    async def body(broker):
        settings = broker.services.settings
        assert settings.config.topics.auto_create_partitions == 1
        await change(broker, BROKER, ALL, num_partitions=3)
        assert settings.config.topics.auto_create_partitions == 3
        await change(broker, BROKER, THIS, num_partitions=5)
        await change(broker, BROKER, ALL, num_partitions=4)
        assert settings.config.topics.auto_create_partitions == 5
        await change(broker, BROKER, THIS, num_partitions=None)
        assert settings.config.topics.auto_create_partitions == 4
        await change(broker, BROKER, ALL, num_partitions=None)
        assert settings.config == settings.static

    run_with_broker(body)


def test_logs_use_the_defaults_at_once_unless_their_topic_sets_them():
    async def body(broker):
        await broker.topic("inherits")
        await broker.topic("own", retention_ms="1000")
        changed = {"log_retention_ms": 5000, "log_cleanup_policy": "compact,delete"}
        assert await change(broker, BROKER, ALL, **changed) == ErrorCode.NONE
        inherits, own = broker.log("inherits").settings, broker.log("own").settings
        assert (inherits.retention_ms, inherits.requires_keys) == (5000, True)
        assert (own.retention_ms, own.requires_keys) == (1000, True)
        await change(broker, BROKER, ALL, log_retention_ms=None)
        assert broker.log("inherits").settings.retention_ms == 7 * 24 * 3600 * 1000

    run_with_broker(body)


def test_producers_and_transactions_follow_their_configs():
    async def body(broker):
        await broker.topic("orders")
        await broker.write("orders", 1, producer_id=500, producer_epoch=0, base_sequence=0)
        changed = {
            "producer_id_expiration_ms": 60_000,
            "transaction_partition_verification_enable": "false",
        }
        assert await change(broker, BROKER, ALL, **changed) == ErrorCode.NONE
        assert not broker.services.config.transaction.partition_verification
        retaining = asyncio.create_task(broker.services.storage.run())
        await asyncio.sleep(broker.services.config.storage.retention_check_interval_ms / 1000 + 1)
        retaining.cancel()
        assert 500 not in broker.log("orders").producers
        assert await change(broker, BROKER, THIS, transaction_max_timeout_ms=1) == (
            ErrorCode.INVALID_REQUEST
        )

    run_with_broker(body)


def test_dynamic_configs_survive_a_restart_and_reach_other_brokers():
    async def scenario(_random):
        stores = Stores()
        async with running_broker(stores) as broker:
            await change(broker, BROKER, ALL, group_max_size=3, message_max_bytes=2000)
            await change(broker, BROKER, THIS, group_max_size=5)
        async with running_broker(stores) as broker:
            assert broker.services.config.group.size_max == 5
            await broker.topic("orders")
            assert broker.log("orders").settings.message_bytes_max == 2000
        async with running_broker(stores, node_id=NODE_ID + 1) as other:
            assert other.services.config.group.size_max == 3

    virtual_time.run(scenario, seed=0)


@pytest.mark.parametrize(
    "stored",
    [
        {"of.a.newer.version": "1", "num.partitions": "none", "group.max.size": "9"},
        {
            "group.min.session.timeout.ms": "100000",
            "group.max.session.timeout.ms": "50000",
            "log.retention.ms": "7",
        },
    ],
    ids=["unknown", "contradicting"],
)
def test_stored_configs_that_cannot_be_applied_are_ignored(stored):
    async def scenario(_random):
        stores = Stores()
        await stores.metadata.commit([], [Put(ALL_BROKERS.key, encode_configs(stored))])
        async with running_broker(stores) as broker:
            settings = broker.services.settings
            assert settings.config.topics == settings.static.topics
            assert settings.config.group.size_max == int(stored.get("group.max.size", 2**31 - 1))
            expected = stored.get("log.retention.ms", "604800000")
            assert settings.topic_defaults.values["retention.ms"] == expected

    virtual_time.run(scenario, seed=0)


def test_contradictions_are_refused():
    async def body(broker):
        contradiction = {
            "group_min_session_timeout_ms": 100_000,
            "group_max_session_timeout_ms": 50_000,
        }
        assert await change(broker, BROKER, ALL, **contradiction) == ErrorCode.INVALID_REQUEST
        assert broker.services.config_store.get(ALL_BROKERS) == {}

    run_with_broker(body)


def test_defaults_of_all_brokers_are_known_for_the_lifecycle_of_the_bucket():
    async def body(broker):
        settings, store = broker.services.settings, broker.services.config_store
        calls = []
        settings.subscribe_to_all(lambda: calls.append(1))
        other = ConfigEntity(EntityKind.BROKER, "99")
        await store.alter(other, lambda _: {"log.retention.ms": "-1"})
        await store.alter(ALL_BROKERS, lambda _: {"log.retention.ms": "5"})
        retentions = {each.values["retention.ms"] for each in settings.topic_defaults_of_all()}
        assert (retentions, len(calls)) == ({"-1", "5"}, 2)
        assert settings.topic_defaults.values["retention.ms"] == "5"

    run_with_broker(body)


def test_group_configs_apply_to_that_group_only():
    async def body(broker):
        registry = broker.services.groups.registry
        assert await change(broker, GROUP, "a", consumer_session_timeout_ms=50_000) == 0
        of_a, of_b = registry.get_or_create("a"), registry.get_or_create("b")
        settings = [each.group._group_state.settings for each in (of_a, of_b)]
        assert [each.consumer_session_timeout_ms for each in settings] == [50_000, 45_000]
        await change(broker, BROKER, ALL, group_consumer_heartbeat_interval_ms=6000)
        await change(broker, GROUP, "b", consumer_heartbeat_interval_ms=7000)
        settings = [each.group._group_state.settings for each in (of_a, of_b)]
        assert [each.consumer_heartbeat_interval_ms for each in settings] == [6000, 7000]
        assert [each.consumer_session_timeout_ms for each in settings] == [50_000, 45_000]
        await change(broker, BROKER, ALL, group_consumer_session_timeout_ms=6500)
        assert of_b.group._group_state.settings.consumer_heartbeat_interval_ms == 6000
        await change(broker, BROKER, ALL, group_consumer_session_timeout_ms=None)
        await change(broker, GROUP, "b", consumer_heartbeat_interval_ms=None)
        assert of_b.group._group_state.settings.consumer_heartbeat_interval_ms == 6000

    run_with_broker(body)
