"""ListConfigResources (74): list the resources that have configs.

Version notes:
* v0: flexible from the beginning; called ListClientMetricsResources and lists those only (KIP-714).
* v1: resources of any type, under the current name (KIP-1142).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Int8, Int16, Int32, Message, String, since


class ListConfigResourcesRequest(Message):
    resource_types: Annotated[list[Int8], since(1)] = []
    """Numbered as in `describe_configs`; empty: every supported type."""


class ListedResource(Message):
    resource_name: String = ""
    resource_type: Annotated[Int8, since(1)] = 16


class ListConfigResourcesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    resources: list[ListedResource] = []


LIST_CONFIG_RESOURCES = Api(
    74,
    "ListConfigResources",
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    1,
    flexible_since=0,
)
