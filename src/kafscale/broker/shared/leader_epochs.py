"""Whether a client knows who leads a partition (KIP-320)."""

from typing import Final

from kafscale.errors import FencedLeaderEpochError, UnknownLeaderEpochError
from kafscale.storage.log.partition_log import PartitionLog

NOT_KNOWN: Final = -1


def check_leader_epoch(partition: PartitionLog, believed: int) -> None:
    """Refuse a client that believes in another epoch than the partition's; -1 is no belief."""
    if believed in {NOT_KNOWN, partition.leader_epoch}:
        return
    place = f"{partition.topic}/{partition.partition} is in epoch {partition.leader_epoch}"
    if believed < partition.leader_epoch:
        raise FencedLeaderEpochError(f"{place}, not {believed} any more")
    raise UnknownLeaderEpochError(f"{place}, not yet in {believed}")
