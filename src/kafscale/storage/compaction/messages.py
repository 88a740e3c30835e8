"""What a broker and the process that compacts for it send each other.

A log is compacted in two passes: `Note` for each dirty segment, then `Add` for each segment from
the log start on, with a `Finish` after each group of segments that become one. After a `Failed`,
only `Begin` is allowed. Pure.
"""

from collections.abc import Sequence

import msgspec

from kafscale.records.checksum import Buffer


class Message(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A command or a reply; commands and replies may come with the bytes of a segment."""


class Begin(Message, frozen=True):
    """Compact the next log."""

    memory_bytes_max: int
    """How many bytes the offsets of keys may take."""
    now_ms: int
    horizon_ms: int
    """When tombstones that have no delete horizon yet may be dropped."""
    index_interval_bytes: int
    """The distance between two entries of the index of a new segment."""
    aborted: Sequence[tuple[int, int, int]] = ()
    """The aborted transactions: producer id, first offset, offset of the marker; ascending."""


class Note(Message, frozen=True):
    """Note the latest offset of each key in a segment, from an offset on."""

    key: str
    start_offset: int
    end_offset: int


class Add(Message, frozen=True):
    """Add the records of a segment that are not obsolete to the output."""

    key: str
    start_offset: int
    end_offset: int


class Finish(Message, frozen=True):
    """Return the output as one segment, unless it equals the only segment that was added."""


class Done(Message, frozen=True):
    """The reply to `Begin`."""


class Noted(Message, frozen=True):
    """The reply to `Note`."""

    end_offset: int
    """All keys before it are noted."""
    is_full: bool
    """Whether no more keys fit into the memory."""


class Added(Message, frozen=True):
    """The reply to `Add`."""

    size_bytes: int
    """The size of the output."""
    has_records: bool
    """Whether a record is left in the output."""
    end_offset: int
    """The end of what was added. It is beyond the segment if a crash has interrupted its creation
    from several: then the others, which it replaces, come next."""


class Finished(Message, frozen=True):
    """The reply to `Finish`, with the new segment and its index if it differs from the old ones."""

    count_before: int
    count_after: int
    index_bytes: int
    """The size of the index, which follows the segment."""


class Failed(Message, frozen=True):
    """A segment that cannot be read."""

    key: str
    reason: str


Command = Begin | Note | Add | Finish
Reply = Done | Noted | Added | Finished | Failed
Parts = Sequence[Buffer]
