"""Load counts: which brokers are below their target, and which is chosen next."""

from kafscale.broker.cluster.controller.plan.load import LoadCounts
from kafscale.broker.cluster.controller.plan.units import AssignmentUnit
from kafscale.metadata.schema.model import BrokerInfo


def load_counts(racks, total):
    return LoadCounts(
        [
            BrokerInfo(id=number, epoch=1, host="host", port=9092, rack=rack)
            for number, rack in enumerate(racks)
        ],
        total,
    )


def assign(load, *broker_ids, topic="orders"):
    for broker_id in broker_ids:
        load.assign(AssignmentUnit(topic, 0, None, {}), broker_id)


def test_brokers_are_below_target_up_to_their_share():
    load = load_counts("aaa", 7)
    assign(load, 0, 0)
    assert load.below_target() == [0, 1, 2]
    assign(load, 0)
    assert load.below_target() == [1, 2]
    assign(load, 1, 1)
    assert load.below_target() == [2], "another broker has the extra unit already"
    assert [load.is_below_target(number) for number in range(3)] == [False, False, True]
    assign(load, 2, 2)
    assert load.below_target() == []
    assert load.is_balanced


def test_broker_above_its_share_makes_the_load_overloaded():
    load = load_counts("aa", 4)
    assign(load, 0, 0)
    assert not load.is_overloaded
    assign(load, 0)
    assert load.is_overloaded
    assert not load.is_balanced


def test_unit_counts_at_its_target():
    load = load_counts("ab", 2)
    unit = AssignmentUnit("orders", 0, None, {})
    load.assign(unit, 0)
    load.assign(unit, 1)
    assert (load.count(0), load.count(1)) == (0, 1)
    assert (load.count_of_topic("orders", 0), load.count_of_topic("orders", 1)) == (0, 1)
    assert load.extremes() == (1, 0)


def test_choose_spreads_topic_then_racks_then_total():
    load = load_counts("aabb", 100)
    assign(load, 0, 1, 2, topic="payments")
    assert load.choose("orders", load.all_brokers()) == 3, (
        "the rack and the broker with the fewest units"
    )
    assign(load, 3)
    assert load.choose("orders", load.all_brokers()) == 0, "the other rack"
    assign(load, 0)
    assign(load, 1)
    assert load.choose("orders", load.all_brokers()) == 2, "the only broker without a unit"


def test_choose_weighs_racks_by_their_size():
    load = load_counts("aaab", 100)
    assign(load, 0, 1, 3, topic="payments")
    assert load.choose("orders", load.all_brokers()) == 2
