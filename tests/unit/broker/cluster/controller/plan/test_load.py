"""The spread of pieces: who has room, and who is next."""

from kafscale.broker.cluster.controller.plan.load import Spread
from kafscale.broker.cluster.controller.plan.unit import Piece
from kafscale.metadata.schema.model import BrokerInfo


def spread(racks, total):
    return Spread(
        [
            BrokerInfo(id=number, epoch=1, host="host", port=9092, rack=rack)
            for number, rack in enumerate(racks)
        ],
        total,
    )


def put(over, *broker_ids, topic="orders"):
    for broker_id in broker_ids:
        over.put(Piece(topic, 0, None, {}), broker_id)


def test_everybody_has_room_up_to_its_share_and_some_for_one_more():
    over = spread("aaa", 7)
    put(over, 0, 0)
    assert over.with_room() == [0, 1, 2]
    put(over, 0)
    assert over.with_room() == [1, 2]
    put(over, 1, 1)
    assert over.with_room() == [2], "somebody else has the one more already"
    assert [over.has_room(number) for number in range(3)] == [False, False, True]
    put(over, 2, 2)
    assert over.with_room() == []
    assert over.is_level


def test_who_has_more_than_it_will_keep_makes_it_overfull():
    over = spread("aa", 4)
    put(over, 0, 0)
    assert not over.is_overfull
    put(over, 0)
    assert over.is_overfull
    assert not over.is_level


def test_a_piece_counts_where_it_is_meant_for():
    over = spread("ab", 2)
    piece = Piece("orders", 0, None, {})
    over.put(piece, 0)
    over.put(piece, 1)
    assert (over.count(0), over.count(1)) == (0, 1)
    assert (over.count_of_topic("orders", 0), over.count_of_topic("orders", 1)) == (0, 1)
    assert over.extremes() == (1, 0)


def test_a_topic_is_spread_over_brokers_then_racks_then_by_load():
    over = spread("aabb", 100)
    put(over, 0, 1, 2, topic="payments")
    assert over.best("orders", over.everybody()) == 3, "the rack and the broker with the fewest"
    put(over, 3)
    assert over.best("orders", over.everybody()) == 0, "the other rack"
    put(over, 0)
    put(over, 1)
    assert over.best("orders", over.everybody()) == 2, "the only one without"


def test_racks_are_measured_by_their_size():
    over = spread("aaab", 100)
    put(over, 0, 1, 3, topic="payments")
    assert over.best("orders", over.everybody()) == 2
