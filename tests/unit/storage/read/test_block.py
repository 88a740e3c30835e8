"""Verification of batches in blocks, also of those that span blocks."""

from itertools import pairwise

import pytest

from kafscale.records.batch import LEADER_EPOCH_POSITION
from kafscale.storage.read import block
from kafscale.storage.read.block import BatchPlace, Block, is_verified, verify
from unit.storage.samples import batch

BLOCK_BYTES = 200
START = 32
BASE_OFFSET = 7


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(block, "BLOCK_BYTES", BLOCK_BYTES)


def body() -> tuple[bytes, list[BatchPlace]]:
    """A segment's bytes, and the places of its batches and of its end."""
    data, places, offset = bytes(START), [], BASE_OFFSET
    for value in (b"", b"x" * 20, b"x" * 500, b"", b"", b"x" * 130):
        places.append(BatchPlace(len(data), offset))
        data += bytes(batch(offset, 2, value=value).buffer)
        offset += 2
    places.append(BatchPlace(len(data), offset))
    return data + b"footer", places


def blocks_of(data: bytes) -> list[Block]:
    view = memoryview(data)
    return [Block(at, view[at : at + BLOCK_BYTES]) for at in range(0, len(data), BLOCK_BYTES)]


def test_undamaged_batches_are_verified_from_any_place():
    data, places = body()
    for first in range(len(places) - 1):
        for last in range(first + 1, len(places)):
            blocks = blocks_of(data)
            stop = places[last].position
            assert verify(blocks, places[first], stop).position >= stop
            assert verify(blocks, places[0], places[-1].position) == places[-1]


def test_any_damage_is_found_at_its_batch():
    data, places = body()
    for position in range(START, places[-1].position):
        number = max(number for number, place in enumerate(places) if place.position <= position)
        damaged = bytearray(data)
        damaged[position] ^= 1
        if 0 <= position - places[number].position - LEADER_EPOCH_POSITION < 4:
            continue  # Brokers set it after the producer; nothing covers it.
        blocks = blocks_of(bytes(damaged))
        assert verify(blocks, places[0], places[-1].position) == places[number]
        assert not is_verified(blocks, places[0].position, places[-1].position)


def test_only_batches_within_a_block_are_remembered():
    data, places = body()
    blocks = blocks_of(data)
    assert not is_verified(blocks, places[0].position, places[1].position)
    verify(blocks, places[0], places[-1].position)
    within = [
        is_verified(blocks, place.position, following.position)
        for place, following in pairwise(places)
    ]
    expected = [
        place.position // BLOCK_BYTES == (following.position - 1) // BLOCK_BYTES
        for place, following in pairwise(places)
    ]
    assert within == expected
    assert True in within
    assert False in within
