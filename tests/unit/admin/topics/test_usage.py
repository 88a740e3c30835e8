"""What a look tells of topics."""

from kafscale.admin.cluster.figures import OTHER
from kafscale.admin.topics.usage import stored_bytes, topic_figures
from services.looks import broker, figures, look, partition, topic


def test_records_and_bytes_are_added_up_over_all_brokers():
    seen = look(
        broker(
            1,
            partitions=(partition("a", 0, records=5, size_bytes=100),),
            measured=figures(stored={("a", 0): 150}),
        ),
        broker(2, partitions=(partition("a", 1, records=7, size_bytes=30),)),
        topics=(topic("a", 2),),
    )
    found = topic_figures(seen)["a"]
    assert (found.record_count, found.size_bytes, found.leaderless_count) == (12, 180, 0)


def test_of_a_topic_that_is_not_wholly_served_nobody_knows_how_much_it_has():
    opening = partition("a", 1, state="opening")
    seen = look(
        broker(1, partitions=(partition("a", 0, records=5), opening)), topics=(topic("a", 3),)
    )
    found = topic_figures(seen)["a"]
    assert (found.record_count, found.size_bytes, found.leaderless_count) == (None, None, 2)


def test_a_topic_that_was_grown_after_it_was_listed_has_what_is_served():
    served = (partition("a", 0), partition("a", 1))
    found = topic_figures(look(broker(1, partitions=served), topics=(topic("a", 1),)))["a"]
    assert (found.partition_count, found.leaderless_count) == (2, 0)


def test_what_is_stored_includes_what_is_not_told_one_by_one():
    measured = figures(stored={("a", 0): 150, OTHER: 1000})
    assert stored_bytes(look(broker(1, measured=measured), broker(2))) == 1150
