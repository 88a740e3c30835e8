"""Options of the member programs, and the signal that stops them."""

import signal
import sys

import msgspec

from services.member_events import AnyEvent, encode_event

BATCH_RECORDS_MAX = 100
COMMIT_S_MAX = 30
"""How long a member retries a commit: longer than a broker restart takes."""


class MemberOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The first argument of the program, as JSON."""

    address: str
    group: str
    topic: str
    strategy: str
    instance_id: str | None = None
    session_timeout_ms: int = 6_000
    heartbeat_interval_ms: int = 500
    reset: str = "earliest"


class StopSignal:
    """Is set by SIGTERM, on which the member leaves the group."""

    def __init__(self) -> None:
        self.is_set = False
        signal.signal(signal.SIGTERM, self._end)

    def _end(self, *_: object) -> None:
        self.is_set = True


def parse_options() -> MemberOptions:
    return msgspec.json.decode(sys.argv[1], type=MemberOptions)


def emit(event: AnyEvent) -> None:
    print(encode_event(event), flush=True)  # noqa: T201 - it is what the program is for.
