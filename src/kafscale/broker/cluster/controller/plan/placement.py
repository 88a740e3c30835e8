"""Placing: for each piece, the broker that it is meant for.

The laws: what has a home stays, or goes on to where it moves, as long as somebody is there; what
has lost its owner goes back to the broker of the same id, if that is back and has room. Everything
else goes where there is room, its topic spread widely. Pieces are placed in their order, so that
the same always go the same ways; those that must wait are placed as well, and keep their room.
"""

from collections.abc import Mapping, Sequence

from kafscale.broker.cluster.controller.plan.load import Spread
from kafscale.broker.cluster.controller.plan.unit import NOWHERE, Piece
from kafscale.metadata.schema.model import BrokerInfo


def place(pieces: Sequence[Piece], brokers: Mapping[int, BrokerInfo]) -> Spread:
    """Give all pieces of one kind a destination; there is at least one broker."""
    # Brokers that are about to leave take nothing, unless there are no others.
    staying = {broker.id: broker for broker in brokers.values() if not broker.is_draining}
    spread = Spread((staying or brokers).values(), len(pieces))
    homeless: list[Piece] = []
    new: list[Piece] = []
    for piece in pieces:
        destination = _kept(piece, staying, spread)
        if destination != NOWHERE:
            spread.put(piece, destination)
        else:
            (homeless if piece.before else new).append(piece)
    for piece in _not_returning(homeless, spread):
        spread.put(piece, spread.best(piece.topic, spread.with_room()))
    _place_new(new, spread)
    return spread


def _kept(piece: Piece, staying: Mapping[int, BrokerInfo], spread: Spread) -> int:
    """Where a piece is anyway, or moves to already; `NOWHERE` if it needs a new place."""
    if piece.home == NOWHERE:
        return NOWHERE
    assert piece.before is not None
    reassigning_to = piece.before.reassigning_to
    if reassigning_to is not None and reassigning_to in staying:
        return reassigning_to
    return piece.home if piece.home in spread else NOWHERE


def _not_returning(homeless: list[Piece], spread: Spread) -> list[Piece]:
    """Put those that can go back to where they were, in a later life of it; return the others."""
    others: list[Piece] = []
    for piece in homeless:
        assert piece.before is not None
        last = piece.before.broker_id
        if last in spread and spread.has_room(last):
            spread.put(piece, last)
        else:
            others.append(piece)
    return others


def _place_new(new: list[Piece], spread: Spread) -> None:
    # While somebody has too much, moves are due anyway. A new topic is then spread over everybody:
    # if it went where there is room, all of it might end up on the broker that has just joined.
    is_overfull = spread.is_overfull
    for piece in new:
        takers = spread.everybody() if is_overfull else spread.with_room()
        spread.put(piece, spread.best(piece.topic, takers))
