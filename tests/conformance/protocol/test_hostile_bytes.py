"""Malicious input: every decoder returns a message or raises `ProtocolError` for any bytes.

The damage is derived from a seed; a failure shows the case and the bytes.
"""

import random
import tracemalloc

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from conformance.protocol.cases import Case, every_case
from conformance.protocol.values import messages
from kafscale.errors import ProtocolError

brief = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],
)
MEMORY_BYTES_MAX = 256 * 1024
NOISE = [bytes([byte]) * 64 for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF)] + [
    b"\x7f\xff\xff\xff" * 16,
    b"\xff\xff\xff\xff\x0f" * 12,
    b"\x00\x00\x00\x00\x7f\xff\xff\xff" * 8,
    *(random.Random(seed).randbytes(64) for seed in range(8)),
]


@every_case
def test_damaged_messages_are_decoded_or_rejected(case: Case):
    @brief
    @given(messages(case.message, case.version))
    def damage(message):
        encoded = case.codec.encode_bytes(message)
        _truncate(case, encoded)
        _flip_bits(case, encoded)

    damage()


@every_case
def test_random_bytes_allocate_little_memory(case: Case):
    assert case.codec  # Compiled before anything is counted.
    tracemalloc.start()
    try:
        for noise in NOISE:
            _read_or_refuse(case, noise)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < MEMORY_BYTES_MAX


def _truncate(case: Case, encoded: bytes) -> None:
    step = max(1, len(encoded) // 200)
    for length in range(0, len(encoded), step):
        with pytest.raises(ProtocolError):
            case.codec.decode_at(memoryview(encoded)[:length], 0)


def _flip_bits(case: Case, encoded: bytes) -> None:
    dice = random.Random(len(encoded))
    for _ in range(60 if encoded else 0):
        damaged = bytearray(encoded)
        for _ in range(dice.choice([1, 1, 2, 8])):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        _read_or_refuse(case, bytes(damaged))


def _read_or_refuse(case: Case, data: bytes) -> None:
    try:
        message, position = case.codec.decode_at(memoryview(data), 0)
    except ProtocolError:
        return
    assert type(message) is case.message
    assert 0 <= position <= len(data)
