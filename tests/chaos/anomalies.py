"""The anomalies that the checker can find in a history."""

from enum import StrEnum
from typing import NamedTuple


class Name(StrEnum):
    """Named like the anomalies of Jepsen's Kafka workload where it has the same."""

    LOST = "lost write"
    """An acknowledged record was never read, though later records were."""
    UNSEEN = "unseen"
    """A record was acknowledged or read, and the final read ended before it."""
    DUPLICATE = "duplicate"
    """A value of an idempotent producer is at two offsets."""
    INCONSISTENT = "inconsistent offsets"
    """Two values have one offset, or a value is not at its acknowledged offset."""
    ABORTED = "aborted read"
    """A record was read, though its send definitely failed."""
    NEVER_SENT = "never sent"
    """A record was read that no producer sent to that partition."""
    HOLE = "hole"
    """A reader skipped an offset at which there is no record."""
    SKIP = "poll skip"
    """From one poll to the next, a reader skipped a record."""
    SKIP_INSIDE = "internal poll skip"
    """The same within one poll."""
    BACKWARDS = "non-monotonic poll"
    """From one poll to the next, a reader went back."""
    BACKWARDS_INSIDE = "internal non-monotonic poll"
    """The same within one poll."""
    DISORDER = "non-monotonic send"
    """Values of one producer are not in the order in which they were sent."""
    STALE_SEND = "stale send"
    """A send got an offset below one that was acknowledged before the send began."""
    STALE_END = "stale end"
    """An end offset was reported that is below a record acknowledged earlier."""
    STALE_COMMIT = "stale commit"
    """A committed offset was reported that is below one acknowledged earlier."""
    GROUP_SKIP = "group skip"
    """A group read past a record that none of its members read."""
    LOST_KEY = "lost key"
    """A reader of a compacted partition did not get the latest value of a key, or a later one."""
    DELETED_KEY = "deleted key came back"
    """A reader of a compacted partition got a value that had been deleted, without the deletion."""
    SPLIT = "split transaction"
    """Some records of a transaction are committed, and others are not."""
    EARLY = "early read"
    """A reader of committed records got a record before its commit was requested."""
    UNSTABLE = "non-monotonic stable offset"
    """A last stable offset was reported that is below one reported earlier."""
    FAILURE = "client failure"
    """A client failed with an error that no fault explains."""


class Anomaly(NamedTuple):
    """One violation, with its evidence."""

    name: Name
    partition: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.name} in {self.partition}: {self.evidence}"
