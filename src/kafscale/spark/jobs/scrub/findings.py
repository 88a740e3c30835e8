"""What a scrub has found: damage, and what nobody needs.

The law: a finding is about what is there now. Whatever has vanished, or was replaced, since it was
listed is none.
"""

import enum

import msgspec


class Kind(enum.StrEnum):
    """What is wrong with an object, or with what should be one."""

    SEGMENT = "damaged segment"
    INDEX = "damaged index"
    MISSING_INDEX = "missing index"
    WAL = "damaged WAL object"
    CATALOG = "damaged catalog"
    HOLE = "missing offsets"
    OVERLAP = "offsets in two segments"
    ORPHAN_INDEX = "index without a segment"
    ORPHAN_TOPIC = "of no topic"
    STAGED = "left over by a job"
    UNKNOWN = "unknown object"


_DAMAGE = frozenset(
    {Kind.SEGMENT, Kind.INDEX, Kind.MISSING_INDEX, Kind.WAL, Kind.CATALOG, Kind.HOLE}
)


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it should be."""

    kind: Kind
    key: str
    reason: str = ""
    topic: str = ""
    is_repaired: bool = False

    @property
    def is_damage(self) -> bool:
        """Whether somebody has to see to it; the rest only takes room, and is in nobody's way."""
        return self.kind in _DAMAGE and not self.is_repaired

    def __str__(self) -> str:
        return f"{self.kind}: {self.key}" + (f": {self.reason}" if self.reason else "")
