"""AlterConfigs: v0-2.

Behaviour:
* The topic's own configs are replaced as a whole: configs that are not named return to their
  defaults. A resource changes as a whole or not at all, and its new configs apply at once.
* Broker configs are read-only. A resource that appears twice is refused.
* Requires ALTER_CONFIGS on each topic or group, for other resources on the cluster, else TOPIC_,
  GROUP_ or CLUSTER_AUTHORIZATION_FAILED.
* `validate_only` performs the same checks and changes nothing.

Version notes: all versions behave alike.
"""

from typing import Final

from kafscale.broker.configs import changes, resources
from kafscale.broker.configs.resources import ResourceType
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import KafscaleError
from kafscale.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    ResourceToAlter,
)

_KINDS: Final = frozenset(ResourceType) - {ResourceType.BROKER_LOGGER}
"""As in Kafka, the levels of loggers cannot be replaced as a whole."""


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    errors = await resources.alter(
        context,
        request.resources,
        lambda resource: changes.replacement(resource.configs),
        validate_only=request.validate_only,
        kinds=_KINDS,
    )
    return AlterConfigsResponse(resources=list(map(_result, request.resources, errors)))


def error_response(
    _context: RequestContext, request: AlterConfigsRequest, error: KafscaleError
) -> AlterConfigsResponse:
    """The same error for every resource."""
    return AlterConfigsResponse(
        resources=[_result(resource, error) for resource in request.resources]
    )


def _result(resource: ResourceToAlter, error: KafscaleError | None = None) -> AlteredResource:
    return AlteredResource(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
