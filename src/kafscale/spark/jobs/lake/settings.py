"""Settings of the lake job."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.task_planner import TASK_BYTES
from kafscale.spark.read.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.maintenance import MaintenanceOptions
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding
from kafscale.spark.values import ValueSpec

COMMIT_BYTES_MAX: Final = 4 * 1024**3
UPSERT_BYTES_MAX: Final = 512 * 1024**2
"""The limit for `upsert`, because the driver holds the keys of a commit in memory."""

INTERVAL_MS: Final = 10_000


class Mode(StrEnum):
    """What happens to a record whose key the table already has."""

    APPEND = "append"
    """It becomes another row."""
    UPSERT = "upsert"
    """It replaces the row; a tombstone deletes it."""


class Start(StrEnum):
    """Where a new table starts in its topic."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, kw_only=True)
class LakeSettings:
    """What to read, how to decode it, and how much to commit at a time."""

    location: Location
    subscription: Subscription
    values: ValueSpec | None = None
    """How to decode values; None to write records undecoded."""
    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    """The key columns for `upsert`; empty for the record key."""
    granularity: TimeGranularity | None = None
    """Partition tables by the timestamp of records."""
    start: Start = Start.EARLIEST
    fail_on_data_loss: bool = True
    """Whether to fail if retention has deleted records before they were read."""

    is_committed: bool = True
    """Whether records of open and of aborted transactions are left out."""

    is_once: bool = False
    """Whether to stop after the records that existed at the start."""
    interval_ms: int = INTERVAL_MS
    """The time from the start of a round to the start of the next."""
    commit_bytes_max: int = COMMIT_BYTES_MAX
    """About how many bytes of a topic a commit covers; limits what a crash repeats."""
    commit_records_max: int = 0
    """How many offsets of a topic a commit covers; 0 for no limit."""
    task_bytes: int = TASK_BYTES
    encoding: Encoding = field(default_factory=Encoding)
    maintenance: MaintenanceOptions = field(default_factory=MaintenanceOptions)
    """Table maintenance, at the end or once an hour."""

    def __post_init__(self) -> None:
        if self.keys and self.mode is not Mode.UPSERT:
            raise InvalidRequestError("keys need mode upsert")
        if self.keys and self.values is None:
            raise InvalidRequestError("keys name decoded columns, but values are not decoded")
        if self.commit_bytes_max <= 0 or self.commit_records_max < 0 or self.task_bytes <= 0:
            raise InvalidRequestError("sizes of commits and tasks must be positive")
        if self.mode is Mode.UPSERT and self.commit_bytes_max > UPSERT_BYTES_MAX:
            object.__setattr__(self, "commit_bytes_max", UPSERT_BYTES_MAX)
        if self.interval_ms < 0:
            raise InvalidRequestError(
                f"invalid interval {self.interval_ms} ms: it must not be negative"
            )
