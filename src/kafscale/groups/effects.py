"""Effects: what a group asks its caller to do after an event. Groups have no other output.

Invariants: the caller executes effects in order. `Save` writes the group's record as it is after
the event; a reply that is `durable` is sent only after everything saved up to it is in the store.
So no member learns of an assignment that a crash could undo.
"""

from typing import Final

import msgspec

from kafscale.errors import KafscaleError
from kafscale.groups.responses import Response

NO_REPLY_TOKEN: Final = 0


class Reply(msgspec.Struct, frozen=True, gc=False):
    """Send the response of the request with this token; the client may be gone."""

    reply_token: int
    response: Response | KafscaleError
    durable: bool = False


class Save(msgspec.Struct, frozen=True, gc=False):
    """Write the group's record; of several pending saves only the newest is written."""


class Rebalanced(msgspec.Struct, frozen=True, gc=False):
    """A new generation has started: for the log and the metrics."""

    generation: int
    member_count: int
    reason: str


Effect = Reply | Save | Rebalanced
