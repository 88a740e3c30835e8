"""What wishes come to, among the topics that there are."""

import pytest

from kafscale.errors import InvalidRegexError
from kafscale.groups.consumer.subscriptions import Catalogue, compiled, is_wanted
from unit.groups.consumer.driver import facts, parts

TOPICS = facts(orders=3, orders_eu=1, users=2)


def wish(*names, regex=""):
    return frozenset(names), regex


def test_names_and_expressions_add_up_and_what_does_not_exist_is_left_out():
    wanted = Catalogue(TOPICS).wanted
    assert wanted(wish("users", "gone")) == {b"users"}
    assert wanted(wish(regex="orders.*")) == {b"orders", b"orders_eu"}
    assert wanted(wish("users", regex="orders")) == {b"orders", b"users"}
    assert wanted(wish()) == frozenset()


def test_an_expression_matches_the_whole_name():
    assert Catalogue(TOPICS).wanted(wish(regex="order")) == frozenset()
    assert not is_wanted(wish(regex="order"), "orders")
    assert is_wanted(wish(regex="order."), "orders")
    assert is_wanted(wish("orders"), "orders")
    assert not is_wanted(wish("orders"), "users")


def test_partition_counts_are_those_of_all_wishes_together():
    counts = Catalogue(TOPICS).partition_counts([wish("users"), wish(regex="orders"), wish("no")])
    assert counts == {b"users": 2, b"orders": 3}


def test_partitions_are_translated_and_those_of_unknown_topics_drop_out():
    catalogue = Catalogue(TOPICS)
    assert catalogue.by_name(parts(users=(1, 0), gone=(0,))) == {"users": [0, 1]}
    assert catalogue.by_id([("users", (1, 0)), ("gone", (0,))]) == parts(users=(0, 1))


@pytest.mark.parametrize("regex", ["(", "*", r"(?=ahead)", r"(a)\1", "[a"])
def test_an_expression_that_is_none_or_could_take_forever_is_refused(regex, capfd):
    with pytest.raises(InvalidRegexError, match=r"is no regular expression: \w"):
        compiled(regex)
    assert capfd.readouterr() == ("", ""), "the library is not to write to the terminal itself"
