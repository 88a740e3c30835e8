"""IncrementalAlterConfigs: v0-1.

Behaviour:
* Single configs of a topic are set or deleted, and lists are appended to or subtracted from; all
  others stay. A resource changes as a whole or not at all, and its new configs apply at once. Two
  clients that change different configs at the same time both succeed.
* Subscriptions of client metrics are changed likewise; their lists are set as a whole, as in Kafka.
* Broker configs are read-only. A resource that appears twice is refused.
* Requires ALTER_CONFIGS on each topic or group, for other resources on the cluster, else TOPIC_,
  GROUP_ or CLUSTER_AUTHORIZATION_FAILED.
* `validate_only` performs the same checks and changes nothing.

Version notes: all versions behave alike.
"""

from kafscale.broker.configs import changes, resources
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.protocol.messages.incremental_alter_configs import (
    AlteredResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ResourceToAlter,
)


async def handle(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    errors = await resources.alter(
        context,
        request.resources,
        lambda resource: changes.incremental(resource.configs),
        validate_only=request.validate_only,
    )
    return IncrementalAlterConfigsResponse(resources=list(map(_result, request.resources, errors)))


def error_response(
    _context: RequestContext, request: IncrementalAlterConfigsRequest, error: KafscaleError
) -> IncrementalAlterConfigsResponse:
    """The same error for every resource."""
    return IncrementalAlterConfigsResponse(
        resources=[_result(resource, error) for resource in request.resources]
    )


def _result(resource: ResourceToAlter, error: KafscaleError | None = None) -> AlteredResource:
    return AlteredResource(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
