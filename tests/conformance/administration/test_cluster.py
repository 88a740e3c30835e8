"""Requests about the cluster and its resources."""

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from kafscale.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ListConfigResourcesRequest,
)

pytestmark = pytest.mark.timeout(START_S_MAX)


@pytest.mark.parametrize("endpoint_type", [0, 2, 3])
def test_describe_other_endpoints(both, endpoint_type):
    both.call(DESCRIBE_CLUSTER, 1, DescribeClusterRequest(endpoint_type=endpoint_type))


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("types", [[], [2], [4], [8], [16], [32], [0], [3], [2, 2], [16, 4]])
def test_list_config_resources(both, types, version):
    both.call(LIST_CONFIG_RESOURCES, version, ListConfigResourcesRequest(types))
