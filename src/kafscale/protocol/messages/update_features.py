"""UpdateFeatures (57): upgrade or downgrade the finalized features of the cluster (KIP-584).

Version notes:
* v0: flexible from the beginning.
* v1: only to validate; the kind of the update instead of a permission to downgrade (KIP-778).
* v2: all features are updated or none; no result for each feature any more (KIP-1022).
"""

from typing import Annotated

from kafscale.protocol.api import Api
from kafscale.protocol.codec.wire import Boolean, Int8, Int16, Int32, Message, String, since, until


class FeatureToUpdate(Message):
    name: String = ""
    version_max: Int16 = 0
    """The requested level; 0 disables the feature."""
    allow_downgrade: Annotated[Boolean, until(0)] = False
    upgrade_type: Annotated[Int8, since(1)] = 1
    """1 upgrade, 2 downgrade without a loss of metadata, 3 downgrade with one."""


class UpdateFeaturesRequest(Message):
    timeout_ms: Int32 = 60_000
    features: list[FeatureToUpdate] = []
    validate_only: Annotated[Boolean, since(1)] = False


class UpdatedFeature(Message):
    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class UpdateFeaturesResponse(Message):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    features: Annotated[list[UpdatedFeature], until(1)] = []


UPDATE_FEATURES = Api(
    57, "UpdateFeatures", UpdateFeaturesRequest, UpdateFeaturesResponse, 2, flexible_since=0
)
