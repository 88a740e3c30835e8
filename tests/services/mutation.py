"""Mutations of encoded messages, as hostile clients and fuzzers send them."""

from random import Random

SPECIAL = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"\xff\xff\xff\xff\x0f",
    bytes(4),
)
"""Extreme lengths and counts, in several encodings."""


def mutated(data: bytes, random: Random, start: int = 0) -> bytes:
    """The bytes truncated, changed, lengthened, or with extreme numbers; not before `start`."""
    place = random.randrange(start, max(start + 1, len(data)))
    match random.randrange(6):
        case 0:
            return data[:place]
        case 1:
            return data[:place] + bytes([random.getrandbits(8)]) + data[place + 1 :]
        case 2:
            special = random.choice(SPECIAL)
            return data[:place] + special + data[place + len(special) :]
        case 3:
            return data[:place] + random.randbytes(random.randrange(40)) + data[place:]
        case 4:
            end = random.randint(place, max(place, len(data)))
            return data[:end] + data[place:end] + data[end:]
        case _:
            changed = bytearray(data)
            for _ in range(random.randrange(1, 8)):
                if start < len(changed):
                    changed[random.randrange(start, len(changed))] = random.getrandbits(8)
            return bytes(changed)
