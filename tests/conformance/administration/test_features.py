"""Updates of features that Kafka and Kafscale treat alike; the levels of Kafscale are fixed."""

import pytest

from conformance.administration.conftest import START_S_MAX
from kafscale.protocol.messages.update_features import (
    UPDATE_FEATURES,
    FeatureToUpdate,
    UpdateFeaturesRequest,
)

pytestmark = pytest.mark.timeout(START_S_MAX)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
PRESENT = FeatureToUpdate("group.version", 1)

UPDATES = {
    "nothing": [],
    "present level": [PRESENT],
    "present level twice": [PRESENT, PRESENT],
    "present metadata version": [FeatureToUpdate("metadata.version", 27)],
    "present level as a downgrade": [FeatureToUpdate("group.version", 1, True, SAFE_DOWNGRADE)],
    "present level, unsafe": [FeatureToUpdate("group.version", 1, True, UNSAFE_DOWNGRADE)],
    "disabled feature": [FeatureToUpdate("share.version", 0, True, SAFE_DOWNGRADE)],
    "upgrade type 0": [FeatureToUpdate("group.version", 1, False, 0)],
    "upgrade type 9": [FeatureToUpdate("group.version", 1, False, 9)],
    "negative level": [FeatureToUpdate("group.version", -1, True, SAFE_DOWNGRADE)],
    "unknown feature": [FeatureToUpdate("planet.version", 1)],
    "unknown feature at 0": [FeatureToUpdate("planet.version", 0)],
    "unknown feature, disabled": [FeatureToUpdate("planet.version", 0, True, SAFE_DOWNGRADE)],
    "no name": [FeatureToUpdate("", 1)],
    "one is unknown": [PRESENT, FeatureToUpdate("planet.version", 1)],
}


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("updates", UPDATES.values(), ids=UPDATES)
def test_update_features(both, updates, validate_only, version):
    request = UpdateFeaturesRequest(60_000, updates, validate_only)
    both.call(UPDATE_FEATURES, version, request)
