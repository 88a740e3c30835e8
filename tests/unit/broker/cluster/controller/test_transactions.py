"""Plans as commits: what each compares, and how many go into one."""

from kafscale.broker.cluster.controller.plan.planner import Change, Plan
from kafscale.broker.cluster.controller.transactions import PUTS_MAX, batches
from kafscale.metadata.cluster.group_shards import SHARDS_TOPIC
from kafscale.metadata.schema import keys
from kafscale.metadata.schema.cluster_codec import decode_assignment
from kafscale.metadata.schema.model import Assignment, BrokerInfo, Topic
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


def made(changes=(), removals=(), topics=("orders",), **options):
    plan = Plan(to_fence=set(), changes=list(changes), removals=list(removals))
    catalog = {name: topic(name) for name in topics}
    found = list(batches(plan, CONTROLLER, catalog, BROKERS, **options))
    for batch in found:
        check_commit(list(batch.compares.values()), batch.operations)
        assert batch.compares[keys.CONTROLLER] == Compare(key=keys.CONTROLLER, mod_revision=44)
    return found


def compares(batch):
    return {compare for compare in batch.compares.values() if compare.key != keys.CONTROLLER}


def test_a_new_assignment_must_be_absent_and_its_topic_and_broker_there():
    [batch] = made([Change(None, assignment())])
    assert compares(batch) == {
        Compare(key="/kafscale/assignments/orders/0", mod_revision=0),
        Compare(key="/kafscale/topics/orders/config", create_revision=20),
        Compare(key="/kafscale/brokers/1", mod_revision=101),
    }
    [put] = batch.operations
    assert isinstance(put, Put)
    assert decode_assignment(Entry(put.key, put.value, 0, 0)) == assignment()


def test_what_is_taken_from_a_lost_broker_must_be_as_it_was_and_the_broker_still_lost():
    before = assignment(broker_id=9, mod_revision=60)
    [batch] = made([Change(before, assignment(broker_id=2, leader_epoch=1))])
    assert compares(batch) == {
        Compare(key="/kafscale/assignments/orders/0", mod_revision=60),
        Compare(key="/kafscale/topics/orders/config", create_revision=20),
        Compare(key="/kafscale/brokers/9", mod_revision=0),
        Compare(key="/kafscale/brokers/2", mod_revision=102),
    }


def test_a_move_needs_both_brokers_and_a_shard_needs_no_topic():
    before = assignment(SHARDS_TOPIC, 4, broker_id=1, mod_revision=60)
    [batch] = made([Change(before, assignment(SHARDS_TOPIC, 4, broker_id=1, reassigning_to=2))])
    assert compares(batch) == {
        Compare(key="/kafscale/assignments/__consumer_offsets/4", mod_revision=60),
        Compare(key="/kafscale/brokers/1", mod_revision=101),
        Compare(key="/kafscale/brokers/2", mod_revision=102),
    }


def test_only_what_does_not_exist_is_removed():
    [batch] = made(
        removals=[
            assignment("gone", 0, mod_revision=61),
            assignment("orders", 2000, mod_revision=62),
            assignment(SHARDS_TOPIC, 50, mod_revision=63),
        ]
    )
    assert compares(batch) == {
        Compare(key="/kafscale/assignments/gone/0", mod_revision=61),
        Compare(key="/kafscale/topics/gone/config", mod_revision=0),
        Compare(key="/kafscale/assignments/orders/2000", mod_revision=62),
        Compare(key="/kafscale/topics/orders/config", mod_revision=25),
        Compare(key="/kafscale/assignments/__consumer_offsets/50", mod_revision=63),
    }
    assert all(isinstance(operation, Delete) for operation in batch.operations)


def test_a_large_plan_is_split_into_commits_that_the_store_takes():
    changes = [Change(None, assignment("orders", number)) for number in range(1000)]
    found = made(changes)
    assert [len(batch.operations) for batch in found] == [PUTS_MAX] * 15 + [40]
    assert found[0].last.assignment.partition == PUTS_MAX - 1
    names = [f"topic-{number}" for number in range(300)]
    found = made([Change(None, assignment(name)) for name in names], topics=names)
    assert sum(len(batch.operations) for batch in found) == 300
    assert max(len(batch.compares) for batch in found) <= OPERATIONS_MAX
    assert len(found) == 5


def test_commits_may_be_asked_to_be_small():
    changes = [Change(None, assignment("orders", number)) for number in range(10)]
    assert [len(batch.operations) for batch in made(changes, puts_max=4)] == [4, 4, 2]


def test_without_anything_to_do_there_is_no_commit():
    assert made() == []
