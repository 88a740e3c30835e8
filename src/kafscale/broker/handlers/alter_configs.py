"""AlterConfigs: v0-2.

Behaviour:
* What a topic sets itself is replaced as a whole: configs that are not named return to their
  defaults. A resource changes entirely or not at all, and obeys its new configs at once.
* Brokers are read-only. A resource that stands in the request twice is refused.
* `validate_only` checks all of this and changes nothing.

Version notes: all versions are served alike.
"""

import asyncio
from collections import Counter

from kafscale.broker import config_resources, topic_configs
from kafscale.broker.context import RequestContext
from kafscale.broker.services import Services
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    ResourceToAlter,
)


async def handle(context: RequestContext, request: AlterConfigsRequest) -> AlterConfigsResponse:
    named = Counter((each.resource_type, each.resource_name) for each in request.resources)
    altered = await asyncio.gather(
        *(
            _alter(
                context.broker,
                resource,
                is_sole=named[resource.resource_type, resource.resource_name] == 1,
                validate_only=request.validate_only,
            )
            for resource in request.resources
        )
    )
    return AlterConfigsResponse(resources=altered)


def refuse(
    _context: RequestContext, request: AlterConfigsRequest, error: KafscaleError
) -> AlterConfigsResponse:
    """The same error for every resource."""
    return AlterConfigsResponse(
        resources=[_answer(resource, error) for resource in request.resources]
    )


async def _alter(
    broker: Services, resource: ResourceToAlter, *, is_sole: bool, validate_only: bool
) -> AlteredResource:
    try:
        if not is_sole:
            raise InvalidRequestError("Each resource must appear at most once.")
        wanted = {config.name: config.value for config in resource.configs}
        if len(wanted) < len(resource.configs):
            raise InvalidRequestError("Error due to duplicate config keys")
        await config_resources.alter(
            broker,
            resource.resource_type,
            resource.resource_name,
            lambda _current: topic_configs.parse(wanted, broker.topic_defaults),
            validate_only=validate_only,
        )
    except KafscaleError as error:
        return _answer(resource, error)
    return _answer(resource)


def _answer(resource: ResourceToAlter, error: KafscaleError | None = None) -> AlteredResource:
    return AlteredResource(
        error_code=error.code if error else 0,
        error_message=str(error) if error else None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
