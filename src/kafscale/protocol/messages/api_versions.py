"""ApiVersions (18): the APIs that the broker supports, with their versions.

An unsupported version is answered in v0, with UNSUPPORTED_VERSION (KIP-511).

Version notes:
* v1: throttle time.
* v2: a throttled response is sent first and the client muted afterwards (KIP-219).
* v3: flexible, except for the response header; the client's name and version in the request
  (KIP-511); features in the response (KIP-584).
* v4: a supported feature may begin at version 0, which v3 clients reject (KAFKA-17011).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int16, Int32, Int64, Message, String, since, tag


class ApiVersionsRequest(Message):
    client_software_name: Annotated[String, since(3)] = ""
    client_software_version: Annotated[String, since(3)] = ""


class ApiVersionRange(Message):
    key: Int16 = 0
    version_min: Int16 = 0
    version_max: Int16 = 0


class SupportedFeature(Message):
    name: String = ""
    version_min: Int16 = 0
    version_max: Int16 = 0


class FinalizedFeature(Message):
    name: String = ""
    version_max: Int16 = 0
    version_min: Int16 = 0


class ApiVersionsResponse(Message):
    error_code: Int16 = 0
    apis: list[ApiVersionRange] = []
    throttle_time_ms: Annotated[Int32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeature], tag(0, since=3)] = []
    finalized_features_epoch: Annotated[Int64, tag(1, since=3)] = -1
    """Grows whenever the finalized features change; -1 if unknown."""
    finalized_features: Annotated[list[FinalizedFeature], tag(2, since=3)] = []
    is_zookeeper_migration_ready: Annotated[Boolean, tag(3, since=3)] = False


API_VERSIONS = Api(18, "ApiVersions", ApiVersionsRequest, ApiVersionsResponse, 4, flexible_since=3)
