"""`Target`: one decoder of untrusted bytes, and the invariants that every input keeps.

* Only the errors that the target names are raised. An assertion that fails is a defect.
* An input of up to `INPUT_BYTES_MAX` takes at most `SECONDS_MAX` of CPU time.
* It raises the memory of the process by at most the target's `memory_bytes_max`.

A target's `decode` may check more: that what was decoded can be encoded and decoded again, or that
two decoders agree.
"""

import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

INPUT_BYTES_MAX = 64 * 1024
SECONDS_MAX = 1.0
MEMORY_BYTES_MAX = 128 << 20

_RESET_PEAK = "5"
"""What Linux expects in `clear_refs` to reset the peak of the resident memory."""


class FuzzError(AssertionError):
    """An input breaks an invariant; the text has the input."""


@dataclass(frozen=True)
class Target:
    """A decoder with inputs to begin with: bytes that our own encoders wrote."""

    name: str
    decode: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    errors: tuple[type[Exception], ...]
    """The documented errors."""
    memory_bytes_max: int = MEMORY_BYTES_MAX


@dataclass
class Checker:
    """Decodes inputs of one target and checks the invariants."""

    target: Target
    seconds_max: float = SECONDS_MAX
    decoded: int = 0
    """How many inputs were decoded without an error."""
    refused: int = 0
    _memory_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        for seed in self.target.seeds():  # The first use imports, compiles and caches.
            self._decode(seed)
        _reset_peak()
        self._memory_bytes = _peak_bytes()

    def check(self, data: bytes) -> None:
        """Raise `FuzzError` if the input breaks an invariant."""
        began = time.process_time()
        try:
            self._decode(data)
        except Exception as error:
            raise FuzzError(f"{self._of(data)} raises {error!r}") from error
        seconds = time.process_time() - began
        if seconds > self.seconds_max:
            raise FuzzError(f"{self._of(data)} takes {seconds:.1f} s of CPU time")
        grown_bytes = _peak_bytes() - self._memory_bytes
        if grown_bytes > self.target.memory_bytes_max:
            raise FuzzError(f"{self._of(data)} takes {grown_bytes >> 20} MiB of memory")

    def _decode(self, data: bytes) -> None:
        try:
            self.target.decode(data)
        except self.target.errors:
            self.refused += 1
        else:
            self.decoded += 1

    def _of(self, data: bytes) -> str:
        return f"{self.target.name}: the input {data.hex()}"


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _reset_peak() -> None:
    clear = Path("/proc/self/clear_refs")
    if clear.exists():
        clear.write_text(_RESET_PEAK)
