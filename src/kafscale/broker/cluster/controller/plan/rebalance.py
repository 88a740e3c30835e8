"""Levelling: which pieces move from one living broker to another, so that all have equally many.

The laws: as few moves as possible, and none between brokers whose counts differ by one only; a move
that would not be begun today is called off. One that is under way to a broker with too many is sent
elsewhere before another is begun.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kafscale.broker.cluster.controller.plan.load import Spread
from kafscale.broker.cluster.controller.plan.unit import NOWHERE, Piece


def call_off(pieces: Iterable[Piece], spread: Spread) -> int:
    """Keep at home what need not move; return how many moves remain under way."""
    remaining = 0
    for piece in pieces:
        if piece.is_moving:
            if spread.count(piece.destination) > spread.count(piece.home):
                spread.put(piece, piece.home)
            else:
                remaining += 1
    return remaining


def level(pieces: Sequence[Piece], spread: Spread, moves_max: int) -> int:
    """Begin so many moves at most; return how many were begun."""
    if spread.is_level:
        return 0
    held: defaultdict[int, list[Piece]] = defaultdict(list)
    for piece in pieces:
        if piece.home != NOWHERE:
            held[piece.destination].append(piece)
    begun = 0
    while not spread.is_level:
        fullest, emptiest = spread.extremes()
        chosen = _pick(held[fullest], spread, fullest, emptiest, may_begin=begun < moves_max)
        if chosen is None:
            break
        was_moving = chosen.is_moving
        held[fullest].remove(chosen)
        held[emptiest].append(chosen)
        spread.put(chosen, emptiest)
        begun += chosen.is_moving - was_moving
    return begun


def _pick(
    pieces: Iterable[Piece], spread: Spread, fullest: int, emptiest: int, *, may_begin: bool
) -> Piece | None:
    """The piece to go: one on its way, or one whose topic gets spread more evenly by that."""

    def rank(piece: Piece) -> tuple[bool, int, str, int]:
        gain = spread.count_of_topic(piece.topic, fullest) - spread.count_of_topic(
            piece.topic, emptiest
        )
        return piece.destination == piece.home, -gain, piece.topic, piece.partition

    return min(
        (piece for piece in pieces if may_begin or piece.destination != piece.home),
        key=rank,
        default=None,
    )
