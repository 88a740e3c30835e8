"""Properties of plans while brokers and topics come and go and earlier plans are executed."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.cluster.replicas import preferred_owner
from kafscale.metadata.schema.model import NO_BROKER, SHARD_COUNT, SHARDS_TOPIC
from unit.broker.cluster.planned_cluster import PlannedCluster, imbalance

BROKERS = range(5)
TOPICS = ("orders", "payments", "returns", "audit")

events = st.one_of(
    st.tuples(st.sampled_from(["join", "lose", "crash", "drain"]), st.sampled_from(BROKERS)),
    st.tuples(st.sampled_from(["create", "delete", "grow"]), st.sampled_from(TOPICS)),
    st.tuples(st.just("transfer"), st.integers(0, 10)),
    st.tuples(
        st.just("request"),
        st.tuples(
            st.sampled_from(TOPICS),
            st.integers(0, 10),
            st.lists(st.sampled_from(BROKERS), min_size=1, max_size=2, unique=True),
        ),
    ),
)
clusters = st.lists(st.integers(1, 12), min_size=1, max_size=8)


def apply_event(cluster, event, subject):
    """Apply an event, if it is possible."""
    match event:
        case "transfer":
            moving = [
                result
                for result in cluster.assignments.values()
                if result.reassigning_to is not None
            ]
            for result in moving[:subject]:
                if result.reassigning_to in cluster.brokers and _is_alive(cluster, result):
                    cluster.transfer_one(result)
        case "request":
            request_replicas(cluster, *subject)
        case "create" | "grow" | "delete":
            change_topic(cluster, event, subject)
        case "join" if subject not in cluster.brokers:
            cluster.join(subject, rack="ab"[subject % 2])
        case "crash" | "lose" | "drain" if subject in cluster.brokers:
            if event == "crash":
                cluster.join(subject, rack="ab"[subject % 2])
            elif event == "lose":
                cluster.remove_broker(subject)
            else:
                cluster.drain(subject)


def request_replicas(cluster, topic, number, replicas):
    if number < cluster.topics.get(topic, 0):
        cluster.request(topic, **{f"p{number}": replicas})


def change_topic(cluster, event, name):
    if event == "create":
        cluster.topics.setdefault(name, 7)
    elif name in cluster.topics and event == "grow":
        cluster.topics[name] += 4
    elif name in cluster.topics:
        # The topic store deletes the assignments with the topic.
        del cluster.topics[name]
        cluster.replicas.pop(name, None)
        for topic_partition in [
            topic_partition for topic_partition in cluster.assignments if topic_partition[0] == name
        ]:
            del cluster.assignments[topic_partition]


def _is_alive(cluster, assignment):
    return assignment.is_owned_by(cluster.brokers.get(assignment.broker_id))


def check(cluster, planned):
    """What holds for every plan."""
    for change in planned.changes:
        before, after = change.before, change.after
        topic_partition = (after.topic, after.partition)
        assert cluster.assignments.get(topic_partition) == before
        assert after.partition < cluster.topics[after.topic]
        if before is None:
            assert (after.leader_epoch, after.fully_rolled, after.reassigning_to) == (0, True, None)
            assert _is_alive(cluster, after)
        elif _is_alive(cluster, before):
            assert after.reassigning_to != before.reassigning_to
            assert after.leader_epoch == before.leader_epoch
            assert (after.broker_id, after.broker_epoch) == (before.broker_id, before.broker_epoch)
            if after.reassigning_to is not None:
                assert not cluster.brokers[after.reassigning_to].is_draining
                assert after.reassigning_to != after.broker_id
        else:
            owner = (before.broker_id, before.broker_epoch)
            assert owner in cluster.fenced or after.topic == SHARDS_TOPIC
            assert _is_alive(cluster, after)
            assert (after.leader_epoch, after.fully_rolled) == (before.leader_epoch + 1, False)
            assert after.reassigning_to is None
    for broker_id, epoch in planned.to_fence:
        value = cluster.brokers.get(broker_id)
        assert value is None or value.epoch > epoch
    assert not planned.to_fence & cluster.fenced


def check_moves(cluster):
    """Limits of the moves that are under way after a plan."""
    for_balance = 0
    for result in cluster.assignments.values():
        if result.reassigning_to is not None and _is_alive(cluster, result):
            assert not cluster.brokers[result.reassigning_to].is_draining
            for_balance += not cluster.brokers[result.broker_id].is_draining
    assert for_balance <= cluster.moves_max


@given(st.lists(events, max_size=40), st.integers(1, 4))
def test_every_plan_is_valid_and_all_partitions_end_up_assigned(sequence, moves_max):
    cluster = PlannedCluster(0, moves_max=moves_max)
    for event, subject in sequence:
        apply_event(cluster, event, subject)
        planned = cluster.plan()
        check(cluster, planned)
        cluster.apply(planned)
        check_moves(cluster)
    if not cluster.brokers:
        cluster.join(9)
    for planned in cluster.plan_until_done()[0]:
        assert all(
            change.before is None or change.before.mod_revision for change in planned.changes
        )
    assert cluster.assignments.keys() == {
        (topic, number) for topic, count in cluster.topics.items() for number in range(count)
    }
    assert all(_is_alive(cluster, result) for result in cluster.assignments.values())
    staying = [number for number, broker in cluster.brokers.items() if not broker.is_draining]
    requested = check_requested(cluster)
    for shards in (True, False):
        counts = cluster.counts(shards=shards)
        if staying:
            # Brokers that have requested partitions only may have more.
            givers = {
                result.broker_id
                for topic_partition, result in cluster.assignments.items()
                if (result.topic == SHARDS_TOPIC) == shards and topic_partition not in requested
            }
            fewest = min(counts[number] for number in staying)
            assert all(counts[number] <= fewest + 1 for number in givers)
            assert sum(counts[number] for number in staying) == counts.total()


def check_requested(cluster):
    """Check that requested brokers own what they can; return the partitions of these requests."""
    requested = set()
    for topic, lists in cluster.replicas.items():
        for number, replicas in lists.items():
            preferred = preferred_owner(replicas, cluster.brokers)
            if preferred != NO_BROKER:
                requested.add((topic, number))
                assert cluster.assignments[topic, number].broker_id == preferred
    return requested


@given(clusters, st.integers(1, 6))
def test_new_broker_gets_its_share_by_as_few_moves_as_possible(sizes, brokers):
    cluster = PlannedCluster(*range(brokers), moves_max=3)
    cluster.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    cluster.plan_until_done()
    cluster.join(brokers)
    plans, moves = cluster.plan_until_done()
    assert all(not planned.to_fence for planned in plans)
    assert moves <= ceil(sum(sizes) / (brokers + 1)) + ceil(SHARD_COUNT / (brokers + 1))
    assert imbalance(cluster.counts()) <= 1
    assert imbalance(cluster.counts(shards=True)) <= 1


@given(clusters, st.integers(2, 6), st.data())
def test_loss_of_a_broker_moves_only_its_own_units(sizes, brokers, data):
    cluster = PlannedCluster(*range(brokers))
    cluster.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    cluster.plan_until_done()
    before = dict(cluster.assignments)
    lost = data.draw(st.sampled_from(range(brokers)))
    cluster.remove_broker(lost)
    _, moves = cluster.plan_until_done()
    assert moves == 0
    for topic_partition, result in cluster.assignments.items():
        assert result == before[topic_partition] or before[topic_partition].broker_id == lost
    assert imbalance(cluster.counts()) <= 1


@given(clusters, st.integers(2, 6), st.data())
def test_drain_moves_only_the_units_of_the_draining_broker(sizes, brokers, data):
    cluster = PlannedCluster(*range(brokers))
    cluster.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    cluster.plan_until_done()
    leaving = data.draw(st.sampled_from(range(brokers)))
    had = cluster.counts()[leaving] + cluster.counts(shards=True)[leaving]
    cluster.drain(leaving)
    _, moves = cluster.plan_until_done()
    assert moves == had
    cluster.remove_broker(leaving)
    assert cluster.plan_until_done() == ([], 0)


@given(clusters, st.integers(1, 3), st.integers(1, 3))
def test_racks_of_equal_size_get_equal_counts(sizes, racks, brokers_each):
    cluster = PlannedCluster()
    for number in range(racks * brokers_each):
        cluster.join(number, rack=f"rack {number % racks}")
    cluster.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    cluster.apply(cluster.plan())
    for topic in [None, *cluster.topics]:
        counts = cluster.counts(topic, shards=topic == SHARDS_TOPIC)
        by_rack = {
            rack: sum(counts[number] for number in range(rack, racks * brokers_each, racks))
            for rack in range(racks)
        }
        assert imbalance(by_rack) <= (1 if topic in {None, SHARDS_TOPIC} else brokers_each)


@given(clusters, st.integers(1, 6))
def test_each_new_topic_is_spread_evenly(sizes, brokers):
    cluster = PlannedCluster(*range(brokers))
    for number, size in enumerate(sizes):
        cluster.topics[f"topic-{number}"] = size
        plans, moves = cluster.plan_until_done()
        assert (len(plans), moves) == (1, 0)
        assert imbalance(cluster.counts(f"topic-{number}")) <= 1
    assert imbalance(cluster.counts()) <= 1
