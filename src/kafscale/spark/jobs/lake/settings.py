"""What the lake job is asked to do."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kafscale.errors import InvalidRequestError
from kafscale.spark.plan.task_planner import TASK_BYTES
from kafscale.spark.source.location import Location
from kafscale.spark.source.subscription import Subscription
from kafscale.spark.tables.maintenance import MaintenanceOptions
from kafscale.spark.tables.time_partitions import TimeGranularity
from kafscale.spark.tables.writer import Encoding
from kafscale.spark.values import ValueSpec

COMMIT_BYTES_MAX: Final = 4 * 1024**3
UPSERT_BYTES_MAX: Final = 512 * 1024**2
"""For `upsert`: the driver holds the keys of a commit."""

INTERVAL_MS: Final = 10_000


class Mode(StrEnum):
    """What becomes of a record whose key the table has already."""

    APPEND = "append"
    """It is one more row."""
    UPSERT = "upsert"
    """It takes the place of the row; without a value, it removes it."""


class Start(StrEnum):
    """Where a table begins that has seen nothing of its topic yet."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, kw_only=True)
class LakeSettings:
    """What to read, what to make of it, and how much at a time."""

    location: Location
    subscription: Subscription
    values: ValueSpec | None = None
    """How values are decoded; None leaves records as they are."""
    mode: Mode = Mode.APPEND
    keys: tuple[str, ...] = ()
    """The columns that tell rows apart for `upsert`; the record's key, if there are none."""
    unit: TimeGranularity | None = None
    """What tables are partitioned by, of the time of records."""
    start: Start = Start.EARLIEST
    fail_on_data_loss: bool = True
    """Whether to stop where retention has deleted records before they were read."""

    is_once: bool = False
    """Whether to end when all has been read that was there at the beginning."""
    interval_ms: int = INTERVAL_MS
    """How long to wait from the beginning of a round to that of the next."""
    commit_bytes_max: int = COMMIT_BYTES_MAX
    """How many bytes of a topic's log one commit covers, roughly; it bounds what is done twice
    after a crash."""
    commit_records_max: int = 0
    """How many offsets of a topic one commit covers; 0 is without limit."""
    task_bytes: int = TASK_BYTES
    encoding: Encoding = field(default_factory=Encoding)
    upkeep: MaintenanceOptions = field(default_factory=MaintenanceOptions)
    """What is done for the tables besides, at the end or once an hour."""

    def __post_init__(self) -> None:
        if self.keys and self.mode is not Mode.UPSERT:
            raise InvalidRequestError("keys are for upsert: rows that are appended need none")
        if self.keys and self.values is None:
            raise InvalidRequestError("keys name decoded columns, and values are left as they are")
        if self.commit_bytes_max <= 0 or self.commit_records_max < 0 or self.task_bytes <= 0:
            raise InvalidRequestError("a commit and a task need a size above 0")
        if self.mode is Mode.UPSERT and self.commit_bytes_max > UPSERT_BYTES_MAX:
            object.__setattr__(self, "commit_bytes_max", UPSERT_BYTES_MAX)
        if self.interval_ms < 0:
            raise InvalidRequestError(f"the interval cannot be {self.interval_ms} ms")
