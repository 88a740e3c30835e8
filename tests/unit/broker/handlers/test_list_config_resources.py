"""ListConfigResources: the resources of DescribeConfigs."""

import pytest

from kafscale.broker.configs.resources import ResourceType
from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)
from unit.broker.in_memory_broker import NODE_ID, run_with_broker

TOPICS = [("orders", ResourceType.TOPIC), ("other", ResourceType.TOPIC)]
BROKER = (str(NODE_ID), ResourceType.BROKER)
LOGGER = (str(NODE_ID), ResourceType.BROKER_LOGGER)


async def listed(broker, *kinds, version=LIST_CONFIG_RESOURCES.version_max):
    await broker.topic("other")
    await broker.topic("orders")
    request = ListConfigResourcesRequest(list(kinds))
    response = await broker.ask(LIST_CONFIG_RESOURCES, request, version)
    result = [(resource.resource_name, resource.resource_type) for resource in response.resources]
    return response.error_code, result


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], [*TOPICS, BROKER, LOGGER]),
        ([ResourceType.TOPIC], TOPICS),
        ([ResourceType.BROKER, ResourceType.BROKER], [BROKER]),
        ([ResourceType.CLIENT_METRICS, ResourceType.GROUP], []),
    ],
)
def test_resources_with_configs_are_listed(kinds, expected):
    async def body(broker):
        assert await listed(broker, *kinds) == (ErrorCode.NONE, expected)

    run_with_broker(body)


def test_v0_lists_client_metrics_only():
    async def body(broker):
        assert await listed(broker, version=0) == (ErrorCode.NONE, [])

    run_with_broker(body)


def test_unknown_resource_type_is_refused():
    async def body(broker):
        assert await listed(broker, ResourceType.TOPIC, 3) == (ErrorCode.UNSUPPORTED_VERSION, [])

    run_with_broker(body)
