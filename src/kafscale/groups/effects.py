"""What a group wants done after an event: the only way in which it reaches the world.

The law: the shell carries effects out in their order. A `Save` asks for the group's record, as it
is after the event, to be written; a reply that is `durable` leaves only after everything that was
saved up to it is in the store. So nobody is told of an assignment that a crash could take back.
"""

from typing import Final

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.responses import Answer

NO_TICKET: Final = 0


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Answer whoever waits with this ticket; nobody may wait for it any more."""

    ticket: int
    answer: Answer | KafscaleError
    durable: bool = False


class Save(msgspec.Struct, frozen=True, gc=False):
    """Write the record of the group; of several that wait, only the newest is written."""


class Rebalanced(msgspec.Struct, frozen=True, gc=False):
    """A new generation has begun: for the log and the metrics."""

    generation: int
    member_count: int
    reason: str


Effect = Reply | Save | Rebalanced
