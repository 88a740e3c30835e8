"""ListConfigResources: v0-1.

Behaviour:
* Every topic, every broker and its loggers, every subscription of client metrics, and the groups
  that have configs, whether they exist or not; an unknown resource type is UNSUPPORTED_VERSION, as
  in Kafka.
* Requires DESCRIBE_CONFIGS on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v0: client metrics only. v1+: the requested types, or all of them.
"""

from collections.abc import Iterable

from kafscale.broker.configs.resources import ResourceType
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import UnknownApiError
from kafscale.metadata.access import model
from kafscale.metadata.access.model import Operation
from kafscale.metadata.configs.model import EntityKind
from kafscale.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedResource,
)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    context.require(Operation.DESCRIBE_CONFIGS, model.ResourceType.CLUSTER)
    known = {int(each) for each in ResourceType}
    requested = dict.fromkeys(request.resource_types or sorted(known))
    if context.version == 0:
        requested = {int(ResourceType.CLIENT_METRICS): None}
    if unknown := sorted(requested.keys() - known):
        raise UnknownApiError(f"unknown resource types: {unknown}")
    return ListConfigResourcesResponse(
        resources=[
            ListedResource(resource_name=name, resource_type=resource_type)
            for resource_type in requested
            for name in _names(context.broker, resource_type)
        ]
    )


def _names(broker: Services, resource_type: int) -> Iterable[str]:
    match resource_type:
        case ResourceType.TOPIC:
            return sorted(broker.topic_store.visible)
        case ResourceType.GROUP:
            return broker.config_store.names(EntityKind.GROUP)
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return map(str, sorted(broker.cluster.brokers))
        case ResourceType.CLIENT_METRICS:
            return broker.config_store.names(EntityKind.CLIENT_METRICS)
    return ()
