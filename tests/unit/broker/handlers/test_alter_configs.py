"""AlterConfigs: the topic's own configs are replaced as a whole, or not at all."""

import pytest

from kafscale.broker.configs.resources import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsRequest,
    ConfigToSet,
    ResourceToAlter,
)
from unit.broker.in_memory_broker import ADMIN_DISABLED, NODE_ID, run_with_broker


def resource(*configs, name="orders", kind=ResourceType.TOPIC):
    return ResourceToAlter(kind, name, [ConfigToSet(*config) for config in configs])


async def alter(broker, *resources, version=ALTER_CONFIGS.version_max, validate_only=False):
    request = AlterConfigsRequest(list(resources), validate_only)
    response = await broker.ask(ALTER_CONFIGS, request, version)
    assert [(result.resource_type, result.resource_name) for result in response.resources] == [
        (requested.resource_type, requested.resource_name) for requested in resources
    ]
    return response.resources


def configs(broker):
    return broker.services.topic_store.topics["orders"].configs


@pytest.mark.parametrize("version", ALTER_CONFIGS.versions)
def test_unnamed_configs_return_to_their_defaults(version):
    async def body(broker):
        await broker.topic("orders", retention_ms="1000", segment_ms="5000")
        [result] = await alter(broker, resource(("retention.ms", "2000")), version=version)

        assert (result.error_code, result.error_message) == (ErrorCode.NONE, None)
        assert configs(broker) == {"retention.ms": "2000"}
        settings = broker.log("orders").settings
        assert (settings.retention_ms, settings.segment_ms) == (2000, 7 * 24 * 3600 * 1000)

    run_with_broker(body)


@pytest.mark.parametrize(
    ("requested", "code"),
    [
        (resource(("no.such", "1")), ErrorCode.INVALID_CONFIG),
        (resource(("segment.ms", "9"), ("retention.ms", "soon")), ErrorCode.INVALID_CONFIG),
        (resource(("retention.ms", None)), ErrorCode.INVALID_REQUEST),
        (resource(("cleanup.policy", "shred")), ErrorCode.INVALID_CONFIG),
        (resource(("retention.ms", "1"), ("retention.ms", "2")), ErrorCode.INVALID_REQUEST),
        (resource(name="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (resource(name=""), ErrorCode.INVALID_REQUEST),
        (resource(("broker.id", "1"), kind=ResourceType.BROKER), ErrorCode.INVALID_REQUEST),
        (resource(name=str(NODE_ID), kind=ResourceType.BROKER_LOGGER), ErrorCode.INVALID_REQUEST),
        (resource(("no.such", "1"), kind=ResourceType.GROUP), ErrorCode.INVALID_CONFIG),
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


def test_each_resource_succeeds_or_fails_on_its_own():
    async def body(broker):
        await broker.topic("orders")
        result = await alter(
            broker, resource(("retention.ms", "2000")), resource(("retention.ms", "1"), name="no")
        )

        codes = [response.error_code for response in result]
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert configs(broker) == {"retention.ms": "2000"}

    run_with_broker(body)


def test_duplicate_resource_is_refused():
    async def body(broker):
        await broker.topic("orders")
        result = await alter(
            broker, resource(("retention.ms", "1")), resource(("retention.ms", "2"))
        )

        assert [response.error_code for response in result] == [ErrorCode.INVALID_REQUEST] * 2
        assert configs(broker) == {}

    run_with_broker(body)


def test_validate_only_changes_nothing():
    async def body(broker):
        await broker.topic("orders")
        [result] = await alter(broker, resource(("retention.ms", "2000")), validate_only=True)

        assert result.error_code == ErrorCode.NONE
        assert configs(broker) == {}

    run_with_broker(body)


@pytest.mark.parametrize("version", ALTER_CONFIGS.versions)
def test_alter_configs_is_refused_if_admin_is_disabled(version):
    async def body(broker):
        await broker.topic("orders")
        [result] = await alter(broker, resource(("retention.ms", "2000")), version=version)

        assert result.error_code == ErrorCode.POLICY_VIOLATION
        assert configs(broker) == {}

    run_with_broker(body, config=ADMIN_DISABLED)
