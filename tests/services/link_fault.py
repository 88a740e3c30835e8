"""The fault of a link between two servers, and its traffic counters."""

from typing import Literal

import msgspec

Direction = Literal["nothing", "requests", "responses", "everything"]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault; the default is none.

    Shares are those of requests, so only HTTP links have them; `late_share` applies to the chunks
    of bytes of a TCP link as well.
    """

    refuses: bool = False
    """New connections are refused, and existing ones reset."""
    holds: Direction = "nothing"
    """These bytes are received but not forwarded until the fault ends, even if the client gave up
    in the meantime."""
    delay_ms_min: int = 0
    """Requests are delayed, by a random time from here ..."""
    delay_ms_max: int = 0
    """... to here, uniformly distributed."""
    error_share: float = 0
    """Requests that the link answers with an error instead of forwarding them."""
    error_status: int = 503
    lost_share: float = 0
    """Requests that reach the server, and get a reset instead of a response."""
    cut_share: float = 0
    """The same, after the first half of the response."""
    late_share: float = 0
    """Requests that get a reset, and reach the server later, even after the end of the fault. A
    TCP link resets the client of the connection and delivers its last bytes later."""
    late_ms_min: int = 0
    """They reach the server after a random time from here ..."""
    late_ms_max: int = 0
    """... to here, uniformly distributed."""
    only: str = ""
    """A regular expression for the affected requests, such as `^PUT .*/_wal/`."""

    def __str__(self) -> str:
        """The fields that differ from the default."""
        fields = (f"{name}={getattr(self, name)}" for name in self.__struct_fields__)
        return " ".join(
            text for text, default in zip(fields, _DEFAULTS, strict=True) if text != default
        )

    def stops(self, direction: Direction) -> bool:
        return self.holds in {direction, "everything"}


HEALTHY = Fault()
_DEFAULTS = [f"{name}={getattr(HEALTHY, name)}" for name in HEALTHY.__struct_fields__]


class LinkCounts(msgspec.Struct):
    """Counters of a link."""

    connections: int = 0
    requests: int = 0
    errors: int = 0
    lost: int = 0
    held: int = 0
    """Held requests; on TCP links, held chunks of bytes."""
    late: int = 0
    """Late requests; on TCP links, late chunks of bytes."""
    late_pending: int = 0
    """Late requests that have not reached the server yet."""
