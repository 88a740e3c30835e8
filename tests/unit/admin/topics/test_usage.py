"""Usage of topics in a snapshot."""

from kafscale.admin.cluster.metrics import OTHER
from kafscale.admin.topics.usage import dirty_ratios, stored_bytes, topic_usage
from services.cluster_snapshots import broker, metrics, partition, snapshot, topic


def test_usage_is_summed_over_all_brokers():
    state = snapshot(
        broker(
            1,
            partitions=(partition("a", 0, records=5, size_bytes=100),),
            measured=metrics(stored={("a", 0): 150}),
        ),
        broker(2, partitions=(partition("a", 1, records=7, size_bytes=30),)),
        topics=(topic("a", 2),),
    )
    usage = topic_usage(state)["a"]
    assert (usage.record_count, usage.size_bytes, usage.leaderless_count) == (12, 180, 0)


def test_usage_of_partly_served_topic_is_unknown():
    opening = partition("a", 1, state="opening")
    state = snapshot(
        broker(1, partitions=(partition("a", 0, records=5), opening)), topics=(topic("a", 3),)
    )
    usage = topic_usage(state)["a"]
    assert (usage.record_count, usage.size_bytes, usage.leaderless_count) == (None, None, 2)


def test_new_partitions_count_before_they_are_listed():
    served = (partition("a", 0), partition("a", 1))
    usage = topic_usage(snapshot(broker(1, partitions=served), topics=(topic("a", 1),)))["a"]
    assert (usage.partition_count, usage.leaderless_count) == (2, 0)


def test_stored_bytes_include_partitions_exposed_together():
    measured = metrics(stored={("a", 0): 150, OTHER: 1000})
    assert stored_bytes(snapshot(broker(1, measured=measured), broker(2))) == 1150


def test_dirty_ratio_is_that_of_the_dirtiest_broker():
    brokers = [
        broker(number, measured=metrics(dirty_ratios={"a": 0.2 * number})) for number in (2, 1)
    ]
    assert dirty_ratios(snapshot(*brokers)) == {"a": 0.4}
