"""ListConfigResources: v0-1.

Behaviour:
* Every topic, this broker and its logger. Client metrics and groups have no configs, so none are
  listed; a type that Kafka does not know is UNSUPPORTED_VERSION, as there.
* Needs DESCRIBE_CONFIGS on the cluster, CLUSTER_AUTHORIZATION_FAILED otherwise.

Version notes:
* v0: client metrics only. v1+: the types asked for, or all of them.
"""

from collections.abc import Iterable

from kafscale.broker.configs.resources import ResourceType
from kafscale.broker.requests.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import UnknownApiError
from kafscale.metadata.access import model
from kafscale.metadata.access.model import Operation
from kafscale.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedResource,
)


def handle(
    context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    context.require(Operation.DESCRIBE_CONFIGS, model.ResourceType.CLUSTER)
    if context.version == 0:
        return ListConfigResourcesResponse()
    known = {int(kind) for kind in ResourceType}
    wanted = dict.fromkeys(request.resource_types or sorted(known))
    if wanted.keys() - known:
        raise UnknownApiError(f"not a type of resource: {sorted(wanted.keys() - known)}")
    return ListConfigResourcesResponse(
        resources=[
            ListedResource(resource_name=name, resource_type=kind)
            for kind in wanted
            for name in _names(context.broker, kind)
        ]
    )


def _names(broker: Services, kind: int) -> Iterable[str]:
    if kind == ResourceType.TOPIC:
        return sorted(broker.catalog.topics)
    if kind in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}:
        return [str(broker.node_id)]
    return []
