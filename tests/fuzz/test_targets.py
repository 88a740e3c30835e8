"""Every target accepts its seeds, and keeps the invariants for a second of mutations.

`make fuzz` runs longer, and is guided by coverage.
"""

import time
from random import Random

import pytest

from fuzz.runner import run
from fuzz.target import Checker, FuzzError, Target
from fuzz.targets import TARGETS
from kafscale.errors import ProtocolError

pytestmark = pytest.mark.timeout(120)  # Some compile or import for seconds at first.

SECONDS = 1.0


@pytest.mark.parametrize("name", TARGETS)
def test_target(name):
    """A failure shows the input."""
    checker = run(TARGETS[name], SECONDS, Random())
    assert checker.decoded


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_first_seed_is_decoded(target):
    """Mutations of what is refused at once reach little code; other seeds may be refused."""
    target.decode(next(iter(target.seeds())))


def checker_of(decode, **limits):
    return Checker(Target("example", decode, list, (ProtocolError,), **limits))


def test_unexpected_error_is_reported_with_its_input():
    def decode(data):
        raise ProtocolError("documented") if data == b"\x01" else KeyError("defect")

    checker = checker_of(decode)
    checker.check(b"\x01")
    with pytest.raises(FuzzError, match="example: the input 02 raises KeyError"):
        checker.check(b"\x02")


def test_slow_input_is_reported():
    def decode(_data):
        until = time.process_time() + 1.1
        while time.process_time() < until:
            pass

    with pytest.raises(FuzzError, match="input 03 takes"):
        checker_of(decode).check(b"\x03")


def test_input_that_takes_much_memory_is_reported():
    checker = checker_of(lambda data: bytearray(b"x") * (data[0] << 20), memory_bytes_max=32 << 20)
    checker.check(b"\x01")
    with pytest.raises(FuzzError, match=r"input 80 takes \d+ MiB of memory"):
        checker.check(b"\x80")
