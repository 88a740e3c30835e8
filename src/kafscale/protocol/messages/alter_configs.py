"""AlterConfigs (33): replace all configs of a resource; others are reset to their defaults.

From KIP-133; `incremental_alter_configs` replaces it. Resource types: `describe_configs`.

Version notes:
* v1: a throttled response is sent first and the client muted afterwards (KIP-219).
* v2: flexible.
"""

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int8, Int16, Int32, Message, String


class ConfigToSet(Message):
    name: String = ""
    value: String | None = ""


class ResourceToAlter(Message):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[ConfigToSet] = []


class AlterConfigsRequest(Message):
    resources: list[ResourceToAlter] = []
    validate_only: Boolean = False


class AlteredResource(Message):
    error_code: Int16 = 0
    error_message: String | None = ""
    resource_type: Int8 = 0
    resource_name: String = ""


class AlterConfigsResponse(Message):
    throttle_time_ms: Int32 = 0
    resources: list[AlteredResource] = []


ALTER_CONFIGS = Api(
    33, "AlterConfigs", AlterConfigsRequest, AlterConfigsResponse, 2, flexible_since=2
)
