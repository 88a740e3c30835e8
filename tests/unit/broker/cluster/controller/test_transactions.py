"""Plans as transactions: what each compares, and how many operations go into one."""

from kafscale.broker.cluster.controller.plan.planner import Change, Plan
from kafscale.broker.cluster.controller.transactions import PUTS_MAX, build_transactions
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment
from kafscale.metadata.schema.model import SHARDS_TOPIC, Assignment, BrokerInfo, Topic
from kafscale.metadata.store.base import OPERATIONS_MAX, Compare, Delete, Entry, Put, check_commit

CONTROLLER = Entry(keys.CONTROLLER, b"1", create_revision=40, mod_revision=44, lease=7)
BROKERS = {
    number: BrokerInfo(id=number, epoch=3, host="host", port=9092, mod_revision=100 + number)
    for number in range(3)
}


def topic(name, partitions=1000):
    return Topic(
        name=name,
        id=bytes(16),
        partitions=partitions,
        configs={},
        created_ms=0,
        create_revision=20,
        mod_revision=25,
    )


def assignment(name="orders", partition=0, broker_id=1, **fields):
    return Assignment(
        **{
            "topic": name,
            "partition": partition,
            "broker_id": broker_id,
            "broker_epoch": 3,
            "leader_epoch": 0,
            "fully_rolled": True,
            **fields,
        }
    )


def transactions(changes=(), removals=(), topics=("orders",), **options):
    plan = Plan(to_fence=set(), changes=list(changes), removals=list(removals))
    topic_store = {name: topic(name) for name in topics}
    result = list(build_transactions(plan, CONTROLLER, topic_store, BROKERS, **options))
    for txn in result:
        check_commit(list(txn.compares.values()), txn.operations)
        assert txn.compares[keys.CONTROLLER] == Compare(key=keys.CONTROLLER, mod_revision=44)
    return result


def compares(txn):
    return {compare for compare in txn.compares.values() if compare.key != keys.CONTROLLER}


def test_new_assignment_compares_absence_topic_and_broker():
    [txn] = transactions([Change(None, assignment())])
    assert compares(txn) == {
        Compare(key="/kafscale/assignments/orders/0", mod_revision=0),
        Compare(key="/kafscale/topics/orders/config", create_revision=20),
        Compare(key="/kafscale/brokers/broker-1", mod_revision=101),
    }
    [put] = txn.operations
    assert isinstance(put, Put)
    assert decode_assignment(Entry(put.key, put.value, 0, 0)) == assignment()


def test_takeover_compares_assignment_and_both_registrations():
    before = assignment(broker_id=9, mod_revision=60)
    [txn] = transactions([Change(before, assignment(broker_id=2, leader_epoch=1))])
    assert compares(txn) == {
        Compare(key="/kafscale/assignments/orders/0", mod_revision=60),
        Compare(key="/kafscale/topics/orders/config", create_revision=20),
        Compare(key="/kafscale/brokers/broker-9", mod_revision=0),
        Compare(key="/kafscale/brokers/broker-2", mod_revision=102),
    }


def test_move_compares_both_brokers_and_a_shard_no_topic():
    before = assignment(SHARDS_TOPIC, 4, broker_id=1, mod_revision=60)
    [txn] = transactions(
        [Change(before, assignment(SHARDS_TOPIC, 4, broker_id=1, reassigning_to=2))]
    )
    assert compares(txn) == {
        Compare(key="/kafscale/assignments/__consumer_offsets/4", mod_revision=60),
        Compare(key="/kafscale/brokers/broker-1", mod_revision=101),
        Compare(key="/kafscale/brokers/broker-2", mod_revision=102),
    }


def test_removal_compares_that_the_partition_does_not_exist():
    [txn] = transactions(
        removals=[
            assignment("gone", 0, mod_revision=61),
            assignment("orders", 2000, mod_revision=62),
            assignment(SHARDS_TOPIC, 50, mod_revision=63),
        ]
    )
    assert compares(txn) == {
        Compare(key="/kafscale/assignments/gone/0", mod_revision=61),
        Compare(key="/kafscale/topics/gone/config", mod_revision=0),
        Compare(key="/kafscale/assignments/orders/2000", mod_revision=62),
        Compare(key="/kafscale/topics/orders/config", mod_revision=25),
        Compare(key="/kafscale/assignments/__consumer_offsets/50", mod_revision=63),
    }
    assert all(isinstance(operation, Delete) for operation in txn.operations)


def test_large_plan_is_split_within_the_store_limits():
    changes = [Change(None, assignment("orders", number)) for number in range(1000)]
    result = transactions(changes)
    assert [len(txn.operations) for txn in result] == [PUTS_MAX] * 15 + [40]
    assert result[0].last.assignment.partition == PUTS_MAX - 1
    names = [f"topic-{number}" for number in range(300)]
    result = transactions([Change(None, assignment(name)) for name in names], topics=names)
    assert sum(len(txn.operations) for txn in result) == 300
    assert max(len(txn.compares) for txn in result) <= OPERATIONS_MAX
    assert len(result) == 5


def test_transaction_size_can_be_limited():
    changes = [Change(None, assignment("orders", number)) for number in range(10)]
    assert [len(txn.operations) for txn in transactions(changes, puts_max=4)] == [4, 4, 2]


def test_empty_plan_has_no_transactions():
    assert transactions() == []
