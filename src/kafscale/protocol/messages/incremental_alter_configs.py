"""IncrementalAlterConfigs (44): change single configs of a resource, and keep the others (KIP-339).

Resource types: `describe_configs`.

Version notes:
* v1: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int8, Int16, Int32, Message, String


class ConfigToAlter(Message):
    name: String = ""
    operation: Int8 = 0
    """0 set, 1 delete, 2 append to a list, 3 subtract from a list."""
    value: String | None = ""


class ResourceToAlter(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[ConfigToAlter] = []


class IncrementalAlterConfigsRequest(Message):
    resources: list[ResourceToAlter] = []
    validate_only: Boolean = False


class AlteredResource(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


class IncrementalAlterConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    resources: list[AlteredResource] = []


INCREMENTAL_ALTER_CONFIGS = Api(
    44,
    "IncrementalAlterConfigs",
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    1,
    flexible_since=1,
)
