"""What a member is told when it starts, and the signal by which it is told to stop."""

import signal
import sys

import msgspec

from services.member_events import AnyEvent, line_of

BATCH_RECORDS_MAX = 100
COMMIT_S_MAX = 30
"""How long a member tries to commit: a broker that restarts comes back sooner."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The first argument of the program, as JSON."""

    address: str
    group: str
    topic: str
    strategy: str
    instance_id: str | None = None
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 500
    reset: str = "earliest"


class Shift:
    """A member's time at work: from its orders to the signal to leave."""

    def __init__(self) -> None:
        self.is_over = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.is_over = True


def orders() -> Orders:
    return msgspec.json.decode(sys.argv[1], type=Orders)


def tell(event: AnyEvent) -> None:
    print(line_of(event), flush=True)  # noqa: T201 - it is what the program is for.
