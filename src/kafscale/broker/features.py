"""The features of the cluster (KIP-584): their levels, and what may be changed.

Clients choose protocols by finalized features, so a level is listed only if the broker keeps what
it promises:

* `metadata.version` is the one of Kafka 4.1, whose APIs are served; there is no metadata log whose
  format could change.
* `group.version` 1: groups of the protocol of KIP-848 cannot be disabled.
* `transaction.version` 2: the end of a transaction bumps the epoch, and partitions are added by
  producing to them (KIP-890). Clients of earlier versions are served by their requests' versions.
* `share.version` 0: there are no share groups.

Invariant: every broker of a version has the same levels, and none can be changed. An update to the
present level succeeds; any other is refused in Kafka's words.
"""

from typing import Final, NamedTuple

from kafscale.errors import InvalidUpdateVersionError
from kafscale.protocol.messages.api_versions import (
    ApiVersionsResponse,
    FinalizedFeature,
    SupportedFeature,
)

LEVELS: Final = {
    "group.version": 1,
    "metadata.version": 27,
    "share.version": 0,
    "transaction.version": 2,
}
"""The only supported level of each feature, which is finalized."""

EPOCH: Final = 0
"""The epoch of the finalized features, which never change."""

ZERO_SINCE: Final = 4
"""The first version of ApiVersions whose clients accept features at version 0 (KAFKA-17011)."""

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class Update(NamedTuple):
    """A requested level of a feature."""

    name: str
    level: int
    upgrade_type: int


def describe(response: ApiVersionsResponse, version: int) -> ApiVersionsResponse:
    """Add the features to a response of ApiVersions."""
    listed = {name: level for name, level in LEVELS.items() if level or version >= ZERO_SINCE}
    response.supported_features = [
        SupportedFeature(name, level, level) for name, level in listed.items()
    ]
    response.finalized_features_epoch = EPOCH
    # As in Kafka, a feature at level 0 is not finalized.
    response.finalized_features = [
        FinalizedFeature(name, level, level) for name, level in listed.items() if level
    ]
    return response


def check(update: Update, node_id: int) -> None:
    """Raise unless a feature has the requested level already."""
    if reason := _refusal(update, node_id):
        raise InvalidUpdateVersionError(
            f"Invalid update version {update.level} for feature {update.name}. {reason}"
        )


def _refusal(update: Update, node_id: int) -> str:
    """Why an update is refused, checked in Kafka's order; empty if it changes nothing."""
    if update.upgrade_type not in {UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE}:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    current = LEVELS.get(update.name)
    if current is None:
        if update.level == 0:
            return f"Feature {update.name} not found."
        return f"Local controller {node_id} does not support this feature."
    if update.level != current:
        return f"Local controller {node_id} only supports versions {current}-{current}"
    return ""
