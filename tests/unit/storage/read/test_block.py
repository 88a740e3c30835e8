"""Verification of batches in blocks, also of those that span blocks."""

from itertools import pairwise
from random import Random

from kafscale.records.batch import HEADER_BYTES, LEADER_EPOCH_POSITION
from kafscale.storage.read.block import BLOCK_BYTES, BatchPlace, Block, is_verified, verify
from unit.storage.samples import batch

START = 32
BASE_OFFSET = 7
SIZES = (0, BLOCK_BYTES // 2, BLOCK_BYTES // 2, 0, 2 * BLOCK_BYTES, 0, 1000)
"""The sizes of values; some batches span two or three blocks."""


def body() -> tuple[bytearray, list[BatchPlace]]:
    """A segment's bytes, and the places of its batches and of its end."""
    data, places, offset = bytearray(START), [], BASE_OFFSET
    for size_bytes in SIZES:
        places.append(BatchPlace(len(data), offset))
        data += batch(offset, 1, value=bytes(size_bytes)).buffer
        offset += 1
    places.append(BatchPlace(len(data), offset))
    return data + b"footer", places


def blocks_of(data: bytearray) -> list[Block]:
    view = memoryview(data)
    return [Block(at, view[at : at + BLOCK_BYTES]) for at in range(0, len(data), BLOCK_BYTES)]


def test_undamaged_batches_are_verified_from_any_place():
    data, places = body()
    for first in places[:-1]:
        blocks = blocks_of(data)
        for place in (first, places[0]):
            assert verify(blocks, place, places[-1].position) == places[-1]


def test_any_damage_is_found_at_its_batch():
    data, places = body()
    headers = [place.position + at for place in places[:-1] for at in range(HEADER_BYTES)]
    anywhere = Random(0).sample(range(START, places[-1].position), 50)
    for position in headers + anywhere:
        number = max(number for number, place in enumerate(places) if place.position <= position)
        if 0 <= position - places[number].position - LEADER_EPOCH_POSITION < 4:
            continue  # Brokers set it after the producer; nothing covers it.
        data[position] ^= 1
        blocks = blocks_of(data)
        assert verify(blocks, places[0], places[-1].position) == places[number]
        assert not is_verified(blocks, places[0].position, places[-1].position)
        data[position] ^= 1


def test_only_batches_within_a_block_are_remembered():
    data, places = body()
    blocks = blocks_of(data)
    assert not is_verified(blocks, places[0].position, places[1].position)
    verify(blocks, places[0], places[-1].position)
    remembered = [
        is_verified(blocks, place.position, following.position)
        for place, following in pairwise(places)
    ]
    assert remembered == [
        place.position // BLOCK_BYTES == (following.position - 1) // BLOCK_BYTES
        for place, following in pairwise(places)
    ]
    assert {True, False} == set(remembered)
