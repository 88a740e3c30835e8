"""Values of the compacted topic: each names its key, and says whether it is a tombstone.

A tombstone has no bytes, so a header of its record identifies it.
"""

from typing import NamedTuple, Self

_TOMBSTONE = " deleted"


class KeyedValue(NamedTuple):
    """What a history says about a record that has a key."""

    key: str
    id: str
    """Unique, like the values of other topics."""
    is_tombstone: bool

    def __str__(self) -> str:
        return f"{self.key} {self.id}{_TOMBSTONE if self.is_tombstone else ''}"

    @classmethod
    def parse(cls, text: str) -> Self:
        key, _, rest = text.partition(" ")
        return cls(key, rest.removesuffix(_TOMBSTONE), rest.endswith(_TOMBSTONE))
