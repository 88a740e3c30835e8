"""UpdateFeatures: v0-2.

Behaviour:
* The features of a cluster have fixed levels (`broker.features`): an update to the present level
  succeeds, and any other is INVALID_UPDATE_VERSION. All features of a request are updated or none.
* `validate_only` has the same result: nothing ever changes.
* Requires ALTER on the cluster, else CLUSTER_AUTHORIZATION_FAILED.

Version notes:
* v0: every update is an upgrade, as in Kafka, which ignores the permission to downgrade.
* v0-v1: a result for each feature. v2+: none.
"""

from kafscale.broker import features
from kafscale.broker.requests.context import RequestContext
from kafscale.errors import InvalidUpdateVersionError
from kafscale.metadata.access.model import Operation, ResourceType
from kafscale.protocol.messages.update_features import (
    UpdatedFeature,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)


def handle(context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    context.require(Operation.ALTER, ResourceType.CLUSTER)
    for each in request.features:
        upgrade_type = features.UPGRADE if context.version == 0 else each.upgrade_type
        update = features.Update(each.name, each.version_max, upgrade_type)
        try:
            features.check(update, context.broker.node_id)
        except InvalidUpdateVersionError as error:
            raise InvalidUpdateVersionError(
                "The update failed for all features since the following feature had an error:"
                f" {error}"
            ) from error
    return UpdateFeaturesResponse(
        error_message=None,
        features=[UpdatedFeature(each.name, error_message=None) for each in request.features],
    )
