"""IncrementalAlterConfigs: single configs change, the others stay."""

import asyncio

import pytest

from kafscale.broker.configs.changes import Operation
from kafscale.broker.configs.resources import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    ConfigToAlter,
    IncrementalAlterConfigsRequest,
    ResourceToAlter,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, NODE_ID, run_with_broker

SET, DELETE, APPEND = Operation.SET, Operation.DELETE, Operation.APPEND


def resource(*configs, name="orders", kind=ResourceType.TOPIC):
    return ResourceToAlter(kind, name, [ConfigToAlter(*config) for config in configs])


async def alter(
    broker, *resources, version=INCREMENTAL_ALTER_CONFIGS.version_max, validate_only=False
):
    request = IncrementalAlterConfigsRequest(list(resources), validate_only)
    response = await broker.ask(INCREMENTAL_ALTER_CONFIGS, request, version)
    assert [(result.resource_type, result.resource_name) for result in response.resources] == [
        (requested.resource_type, requested.resource_name) for requested in resources
    ]
    return response.resources


def configs(broker):
    return broker.services.topic_store.topics["orders"].configs


@pytest.mark.parametrize("version", INCREMENTAL_ALTER_CONFIGS.versions)
def test_unnamed_configs_stay(version):
    async def body(broker):
        await broker.topic("orders", retention_ms="1000", segment_ms="5000")
        change = resource(("retention.bytes", SET, "100"), ("segment.ms", DELETE, None))
        [result] = await alter(broker, change, version=version)

        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        assert configs(broker) == {"retention.ms": "1000", "retention.bytes": "100"}
        settings = broker.log("orders").settings
        assert (settings.retention_bytes, settings.segment_ms) == (100, 7 * 24 * 3600 * 1000)

    run_with_broker(body)


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (resource(("no.such", SET, "1")), ErrorCode.INVALID_CONFIG),
        (resource(("retention.ms", SET, "1"), ("segment.ms", SET, "x")), ErrorCode.INVALID_CONFIG),
        (resource(("retention.ms", SET, None)), ErrorCode.INVALID_REQUEST),
        (resource(("retention.ms", APPEND, "1")), ErrorCode.INVALID_CONFIG),
        (resource(("cleanup.policy", APPEND, "shred")), ErrorCode.INVALID_CONFIG),
        (resource(("retention.ms", 9, "1")), ErrorCode.INVALID_REQUEST),
        (
            resource(("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
            ErrorCode.INVALID_REQUEST,
        ),
        (resource(name="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (
            resource(("broker.id", SET, "1"), name=str(NODE_ID), kind=ResourceType.BROKER),
            ErrorCode.INVALID_REQUEST,
        ),
        (resource(("any", 9, "1"), kind=ResourceType.GROUP), ErrorCode.INVALID_REQUEST),
        (
            resource(("no.such", SET, "INFO"), name=str(NODE_ID), kind=ResourceType.BROKER_LOGGER),
            ErrorCode.INVALID_CONFIG,
        ),
        (
            resource(("consumer.session.timeout.ms", SET, "1"), kind=ResourceType.GROUP),
            ErrorCode.INVALID_CONFIG,
        ),
        (resource(name="x", kind=0), ErrorCode.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("validate_only", [False, True])
def test_invalid_config_leaves_the_resource_unchanged(requested, code, validate_only):
    async def body(broker):
        await broker.topic("orders", retention_ms="1000")
        [result] = await alter(broker, requested, validate_only=validate_only)

        assert result.error_code == code
        assert result.error_message
        assert configs(broker) == {"retention.ms": "1000"}

    run_with_broker(body)


def test_concurrent_changes_of_different_configs_both_succeed():
    async def body(broker):
        await broker.topic("orders")
        await asyncio.gather(
            alter(broker, resource(("retention.ms", SET, "1000"))),
            alter(broker, resource(("segment.ms", SET, "5000"))),
        )
        assert configs(broker) == {"retention.ms": "1000", "segment.ms": "5000"}

    run_with_broker(body)


def test_duplicate_resource_is_refused():
    async def body(broker):
        await broker.topic("orders")
        change = resource(("retention.ms", SET, "1"))
        result = await alter(broker, change, change)

        assert [response.error_code for response in result] == [ErrorCode.INVALID_REQUEST] * 2
        assert configs(broker) == {}

    run_with_broker(body)


def test_validate_only_changes_nothing():
    async def body(broker):
        await broker.topic("orders")
        [result] = await alter(broker, resource(("retention.ms", SET, "1")), validate_only=True)

        assert result.error_code == ErrorCode.NONE
        assert configs(broker) == {}

    run_with_broker(body)


@pytest.mark.parametrize("version", INCREMENTAL_ALTER_CONFIGS.versions)
def test_incremental_alter_configs_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        await broker.topic("orders")
        [result] = await alter(broker, resource(("retention.ms", SET, "1")), version=version)

        assert result.error_code == ErrorCode.POLICY_VIOLATION
        assert configs(broker) == {}

    run_with_broker(body, config=ADMIN_DISABLED)
