"""DescribeConfigs: v0-4.

Behaviour:
* A topic or a group: all its configs, including inherited ones; a group need not exist. This
  broker: all configs that have a true value here, and kept ones. A broker without a name means the
  dynamic configs of all brokers.
* The loggers of this broker, with their levels.
* A subscription of client metrics, whether it exists or not.
* Each resource succeeds or fails on its own; other types are INVALID_REQUEST.
* Requires DESCRIBE_CONFIGS on each topic or group, for other resources on the cluster, else TOPIC_,
  GROUP_ or CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v0: whether a value is a default. v1+: its source, and on request its synonyms.
* v3+: the type, and on request the documentation.
"""

from kafscale.broker.configs import (
    broker_configs,
    client_metrics,
    group_configs,
    logger_configs,
    resources,
    topic_configs,
)
from kafscale.broker.configs.live_settings import ALL_BROKERS
from kafscale.broker.configs.resources import ResourceType, check_node_id, find_topic
from kafscale.broker.network.advertised import advertised
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidRequestError, KafscaleError
from kafscale.metadata.access.model import Operation
from kafscale.metadata.configs.model import ConfigEntity, EntityKind
from kafscale.metadata.topics.config_types import ConfigSource
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
    match resource.resource_type:
        case ResourceType.TOPIC:
            return topic_configs.describe(find_topic(broker, name).configs, broker.topic_defaults)
        case ResourceType.GROUP:
            if not name:
                raise InvalidRequestError("Group name must not be empty")
            own = broker.config_store.get(ConfigEntity(EntityKind.GROUP, name))
            return group_configs.describe(own, broker.config)
        case ResourceType.BROKER if not name:
            configs = broker.config_store.get(ALL_BROKERS)
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER
            return broker_configs.describe_dynamic(configs, source)
        case ResourceType.BROKER:
            unexpected = "Unexpected broker id, expected {} or empty string, but received {}"
            check_node_id(broker, name, unexpected, "Broker")
            return broker_configs.describe(
                broker.settings, broker_id=broker.node_id, advertised_listeners=_listener(context)
            )
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise InvalidRequestError("Broker id must not be empty")
            unexpected = "Unexpected broker id, expected {} but received {}"
            check_node_id(broker, name, unexpected, "Broker")
            return logger_configs.describe()
        case ResourceType.CLIENT_METRICS:
            return client_metrics.describe(broker, name)
    raise InvalidRequestError(f"Unsupported resource type: {resource.resource_type}")


def _listener(context: RequestContext) -> str:
    return f"{context.client.listener.name}://{Address(*advertised(context))}"


def _failed(resource: ResourceToDescribe, error: KafscaleError) -> DescribedResource:
    return DescribedResource(
        error_code=error.code,
        error_message=str(error),
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
