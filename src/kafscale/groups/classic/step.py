"""What an event means to a classic group: one kind of Join is not like the other."""

import enum


class Step(enum.Enum):
    """The columns of the table of transitions."""

    NEWCOMER = "Join of a member that is not known"
    REJOIN = "Join of a member that has an id"
    RETURN = "Join of a static member that has forgotten its id"
    SYNC = "Sync"
    HEARTBEAT = "Heartbeat"
    LEAVE = "Leave"
    TICK = "Tick"
