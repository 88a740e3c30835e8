"""How a link between two servers misbehaves, and what it has carried."""

from typing import Literal

import msgspec

Held = Literal["nothing", "requests", "answers", "everything"]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is wrong: by default nothing is. Shares are of requests, which only HTTP links know."""

    refuses: bool = False
    """Connections are refused, and those that there are broken off."""
    holds: Held = "nothing"
    """These are taken and not handed on as long as this lasts; then they are, though nobody may
    wait for them any more. Requests go to the server, answers come from it."""
    delay_ms_min: int = 0
    """Requests are late, by something from here ..."""
    delay_ms_max: int = 0
    """... to there, all equally likely."""
    error_share: float = 0
    """Requests that never reach the server: an error is their answer."""
    error_status: int = 503
    lost_share: float = 0
    """Requests that reach the server, and whose connection is reset in place of an answer."""
    cut_share: float = 0
    """The same, but half of the answer comes through."""
    only: str = ""
    """A regular expression for those that all of this is about, such as `^PUT .*/_wal/`."""

    def __str__(self) -> str:
        """What is not as it should be."""
        said = (f"{name}={getattr(self, name)}" for name in self.__struct_fields__)
        return " ".join(text for text, good in zip(said, _GOOD, strict=True) if text != good)

    def stops(self, way: Held) -> bool:
        return self.holds in {way, "everything"}


HEALTHY = Fault()
_GOOD = [f"{name}={getattr(HEALTHY, name)}" for name in HEALTHY.__struct_fields__]


class Carried(msgspec.Struct):
    """What has gone over a link up to now."""

    connections: int = 0
    requests: int = 0
    errors: int = 0
    lost: int = 0
    held: int = 0
    """Requests, or on links that know none pieces of data, that had to wait."""
