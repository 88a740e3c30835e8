"""DescribeConfigs (32): read the configs of topics, brokers and groups (KIP-133).

Resource types, here and in the other APIs on configs: 2 topic, 4 broker, 8 broker logger,
16 client metrics, 32 group.

Version notes:
* v1: where a value comes from, instead of only whether it is a default; synonyms (KIP-226).
* v2: a throttled response is sent first and the client muted afterwards (KIP-219).
* v3: type and documentation of each config (KIP-569).
* v4: flexible.
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int8, Int16, Int32, Message, String, since, until


class ResourceToDescribe(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    config_names: list[String] | None = []
    """None: every config."""


class DescribeConfigsRequest(Message):
    resources: list[ResourceToDescribe] = []
    include_synonyms: Annotated[Boolean, since(1)] = False
    include_documentation: Annotated[Boolean, since(3)] = False


class ConfigSynonym(Message):
    """Another source of the value; sources are in order of precedence."""

    name: String = ""
    value: String | None = ""
    source: Int8 = 0


class DescribedConfig(Message):
    name: String = ""
    value: String | None = ""
    """None if the config is sensitive."""
    read_only: Boolean = False
    is_default: Annotated[Boolean, until(0)] = False
    source: Annotated[Int8, since(1)] = -1
    """1 topic, 2 dynamic broker, 3 dynamic default of all brokers, 4 static broker, 5 default,
    6 dynamic broker logger, 7 client metrics, 8 group."""
    is_sensitive: Boolean = False
    synonyms: Annotated[list[ConfigSynonym], since(1)] = []
    type: Annotated[Int8, since(3)] = 0
    """0 unknown, 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class,
    9 password."""
    documentation: Annotated[String | None, since(3)] = ""


class DescribedResource(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribedConfig] = []


class DescribeConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    resources: list[DescribedResource] = []


DESCRIBE_CONFIGS = Api(
    32, "DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse, 4, flexible_since=4
)
