"""What can be wrong with a history, by name."""

from enum import StrEnum
from typing import NamedTuple


class Name(StrEnum):
    """The names of Jepsen's Kafka workload, where it has one for the same."""

    LOST = "lost write"
    """It was acknowledged and nobody ever read it, though somebody read what lies behind it."""
    UNSEEN = "unseen"
    """It was acknowledged or read, and the final read ended before it."""
    DUPLICATE = "duplicate"
    """A value of an idempotent producer is at two offsets."""
    INCONSISTENT = "inconsistent offsets"
    """Two values claim one offset, or a value is not where its producer was told."""
    ABORTED = "aborted read"
    """It was read, though its send surely failed."""
    NEVER_SENT = "never sent"
    """It was read, and nobody sent it to that partition."""
    HOLE = "hole"
    """A reader went past an offset at which there is nothing."""
    SKIP = "poll skip"
    """From one poll to the next, a reader went past an offset at which there is something."""
    SKIP_INSIDE = "internal poll skip"
    """The same within one poll."""
    BACKWARDS = "non-monotonic poll"
    """From one poll to the next, a reader went back."""
    BACKWARDS_INSIDE = "internal non-monotonic poll"
    """The same within one poll."""
    DISORDER = "non-monotonic send"
    """Values of one producer are in another order than they were sent."""
    STALE_SEND = "stale send"
    """An offset was given that is below one that was acknowledged before the send began."""
    STALE_END = "stale end"
    """A log was said to end before a record that was acknowledged earlier."""
    STALE_COMMIT = "stale commit"
    """A group was said to be less far than a commit that was acknowledged earlier."""
    GROUP_SKIP = "group skip"
    """A group went on behind a record that none of its members read."""
    FAILURE = "client failure"
    """A client could not go on."""


class Anomaly(NamedTuple):
    """One contradiction, and what proves it."""

    name: Name
    partition: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.name} in {self.partition}: {self.evidence}"
