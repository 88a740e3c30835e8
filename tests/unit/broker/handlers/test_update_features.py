"""Features: what ApiVersions lists, and updates that the fixed levels refuse.

What Kafka answers alike is compared with it in tests/conformance/administration/test_features.py.
"""

import pytest

from kafscale.protocol.error_codes import ErrorCode
from kafscale.protocol.messages.api_versions import (
    API_VERSIONS,
    ApiVersionsRequest,
    FinalizedFeature,
    SupportedFeature,
)
from kafscale.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureToUpdate,
    UpdateFeaturesRequest,
)
from unit.broker.in_memory_broker import NODE_ID, run_with_broker

GROUP, METADATA = ("group.version", 1, 1), ("metadata.version", 27, 27)
SHARE, TRANSACTION = ("share.version", 0, 0), ("transaction.version", 2, 2)


@pytest.mark.parametrize(
    ("version", "supported"),
    [(3, [GROUP, METADATA, TRANSACTION]), (4, [GROUP, METADATA, SHARE, TRANSACTION])],
)
def test_api_versions_lists_features(version, supported):
    """Clients of v3 reject features at version 0."""

    async def body(broker):
        response = await broker.ask(API_VERSIONS, ApiVersionsRequest("test", "1"), version)
        assert response.supported_features == [SupportedFeature(*each) for each in supported]
        assert response.finalized_features == [
            FinalizedFeature(*each) for each in (GROUP, METADATA, TRANSACTION)
        ]
        assert response.finalized_features_epoch == 0

    run_with_broker(body)


@pytest.mark.parametrize("version", UPDATE_FEATURES.versions)
@pytest.mark.parametrize(
    ("name", "level", "only"),
    [
        ("group.version", 0, 1),
        ("group.version", 2, 1),
        ("metadata.version", 26, 27),
        ("transaction.version", 1, 2),
    ],
)
def test_levels_are_fixed(name, level, only, version):
    async def body(broker):
        updates = [FeatureToUpdate(name, level, upgrade_type=3 if level < only else 1)]
        response = await broker.ask(UPDATE_FEATURES, UpdateFeaturesRequest(1, updates), version)
        assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert response.error_message == (
            "The update failed for all features since the following feature had an error: Invalid"
            f" update version {level} for feature {name}. Local controller {NODE_ID} only supports"
            f" versions {only}-{only}"
        )

    run_with_broker(body)
