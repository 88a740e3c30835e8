"""DescribeConfigs: v0-4.

Behaviour:
* A topic: all its configs, including inherited ones. This broker: all configs that have a true
  value here, read-only. A broker without a name means the dynamic cluster-wide configs, of which
  there are none.
* The loggers of this broker: one, with the level of its settings.
* A subscription of client metrics, whether it exists or not.
* Each resource succeeds or fails on its own; other types are INVALID_REQUEST.
* Requires DESCRIBE_CONFIGS on each topic or group, for other resources on the cluster, else TOPIC_,
  GROUP_ or CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v0: whether a value is a default. v1+: its source, and on request its synonyms.
* v3+: the type, and on request the documentation.
"""

from kafscale.broker.configs import broker_configs, client_metrics, resources, topic_configs
from kafscale.broker.configs.resources import ResourceType, check_broker, find_topic
from kafscale.broker.network.advertised import advertised
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation
from kafscale.metadata.topics.config_types import ConfigSource, ConfigType
from kafscale.net.address import Address
from kafscale.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
    DescribedResource,
    ResourceToDescribe,
)


def handle(context: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        resources=[_describe(context, request, resource) for resource in request.resources]
    )


def error_response(
    _context: RequestContext, request: DescribeConfigsRequest, error: KafscaleError
) -> DescribeConfigsResponse:
    """The same error for every resource."""
    return DescribeConfigsResponse(
        resources=[_failed(resource, error) for resource in request.resources]
    )


def _describe(
    context: RequestContext, request: DescribeConfigsRequest, resource: ResourceToDescribe
) -> DescribedResource:
    try:
        resources.require(context, Operation.DESCRIBE_CONFIGS, resource)
        configs = _configs(context, resource)
    except KafscaleError as error:
        return _failed(resource, error)
    # As in Kafka, null and an empty list both mean all configs.
    names = set(resource.config_names or ())
    requested = [config for config in configs if not names or config.name in names]
    for config in requested:
        if not request.include_synonyms:
            config.synonyms = []
        if not request.include_documentation:
            config.documentation = None
    return DescribedResource(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=requested,
    )


def _configs(context: RequestContext, resource: ResourceToDescribe) -> list[DescribedConfig]:
    broker, name = context.broker, resource.resource_name
    if resource.resource_type == ResourceType.TOPIC:
        return topic_configs.describe(find_topic(broker, name).configs, broker.topic_defaults)
    if resource.resource_type == ResourceType.BROKER:
        if not name:
            return []
        check_broker(broker, name)
        return broker_configs.describe(
            broker.config,
            broker.topic_defaults,
            broker_id=broker.node_id,
            advertised_listeners=_listener(context),
        )
    if resource.resource_type == ResourceType.BROKER_LOGGER:
        check_broker(broker, name)
        return [_logger(broker.config.logging.level)]
    if resource.resource_type == ResourceType.CLIENT_METRICS:
        return client_metrics.describe(broker, name)
    raise InvalidRequestError(f"Unsupported resource type: {resource.resource_type}")


def _listener(context: RequestContext) -> str:
    return f"{context.client.listener.name}://{Address(*advertised(context))}"


def _logger(level: str) -> DescribedConfig:
    return DescribedConfig(
        name="root",
        value=level.upper(),
        read_only=True,
        source=ConfigSource.STATIC_BROKER,
        type=ConfigType.STRING,
        documentation="The minimum level of events that are logged, for all loggers.",
    )


def _failed(resource: ResourceToDescribe, error: KafscaleError) -> DescribedResource:
    return DescribedResource(
        error_code=error.code,
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
