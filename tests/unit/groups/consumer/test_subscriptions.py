"""Resolution of subscriptions to existing topics."""

import pytest

from kafscale.errors import InvalidRegexError
from kafscale.groups.consumer.subscriptions import TopicSubscriptions, compiled, is_subscribed
from unit.groups.consumer.driver import partitions, topic_infos

TOPICS = topic_infos(orders=3, orders_eu=1, users=2)


def subscription(*names, regex=""):
    return frozenset(names), regex


def test_resolve_names_and_regex_to_existing_topics():
    resolve = TopicSubscriptions(TOPICS).resolve
    assert resolve(subscription("users", "gone")) == {b"users"}
    assert resolve(subscription(regex="orders.*")) == {b"orders", b"orders_eu"}
    assert resolve(subscription("users", regex="orders")) == {b"orders", b"users"}
    assert resolve(subscription()) == frozenset()


def test_regex_matches_the_whole_name():
    assert TopicSubscriptions(TOPICS).resolve(subscription(regex="order")) == frozenset()
    assert not is_subscribed(subscription(regex="order"), "orders")
    assert is_subscribed(subscription(regex="order."), "orders")
    assert is_subscribed(subscription("orders"), "orders")
    assert not is_subscribed(subscription("orders"), "users")


def test_partition_counts_of_all_subscriptions():
    counts = TopicSubscriptions(TOPICS).partition_counts(
        [subscription("users"), subscription(regex="orders"), subscription("no")]
    )
    assert counts == {b"users": 2, b"orders": 3}


def test_partitions_by_name_and_id_without_unknown_topics():
    subscriptions = TopicSubscriptions(TOPICS)
    assert subscriptions.by_name(partitions(users=(1, 0), gone=(0,))) == {"users": [0, 1]}
    assert subscriptions.by_id([("users", (1, 0)), ("gone", (0,))]) == partitions(users=(0, 1))


@pytest.mark.parametrize("regex", ["(", "*", r"(?=ahead)", r"(a)\1", "[a"])
def test_invalid_or_unbounded_regex_is_rejected(regex, capfd):
    with pytest.raises(InvalidRegexError, match=r"is not a valid regular expression: \w"):
        compiled(regex)
    assert capfd.readouterr() == ("", ""), "the library writes nothing to the terminal"
