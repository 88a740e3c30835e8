"""AlterConfigs: v0-2.

Behaviour:
* What a topic sets itself is replaced as a whole: configs that are not named return to their
  defaults. A resource changes entirely or not at all, and obeys its new configs at once.
* Brokers are read-only. A resource that stands in the request twice is refused.
* Needs ALTER_CONFIGS on each topic or group, or for others on the cluster, and is told which it
  lacks: TOPIC_, GROUP_ or CLUSTER_AUTHORIZATION_FAILED.
* `validate_only` checks all of this and changes nothing.

Version notes: all versions are served alike.
"""

from kafscale.broker.configs import resources
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation
from kafscale.metadata.topics import config_validation
from kafscale.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    ResourceToAlter,
)


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    def replacement(resource: ResourceToAlter) -> resources.Change:
        resources.require(context, Operation.ALTER_CONFIGS, resource)
        wanted = {config.name: config.value for config in resource.configs}
        if len(wanted) < len(resource.configs):
            raise InvalidRequestError("Error due to duplicate config keys")
        return lambda _current: config_validation.validate(wanted, context.broker.topic_defaults)

    errors = await resources.alter(
        context.broker, request.resources, replacement, validate_only=request.validate_only
    )
    if not request.validate_only:
        resources.audit_changes(context, request.resources, errors)
    return AlterConfigsResponse(resources=list(map(_answer, request.resources, errors)))


def error_response(
    _context: RequestContext, request: AlterConfigsRequest, error: KafscaleError
) -> AlterConfigsResponse:
    """The same error for every resource."""
    return AlterConfigsResponse(
        resources=[_answer(resource, error) for resource in request.resources]
    )


def _answer(resource: ResourceToAlter, error: KafscaleError | None = None) -> AlteredResource:
    return AlteredResource(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
