"""Round-robin: partition i goes to member i modulo their count."""

from kafscale.groups.assignors import round_robin_assignment


def test_partitions_are_assigned_in_turn_across_topics():
    subscriptions = dict.fromkeys("ba", ("x", "y"))
    assert round_robin_assignment(subscriptions, {"x": 3, "y": 3}) == {
        "a": {"x": [0, 2], "y": [1]},
        "b": {"x": [1], "y": [0, 2]},
    }


def test_members_without_subscription_are_skipped():
    subscriptions = {"a": ["x"], "b": ["x", "y"], "c": ["x", "y"]}
    assert round_robin_assignment(subscriptions, {"x": 1, "y": 3}) == {
        "a": {"x": [0]},
        "b": {"y": [0, 2]},
        "c": {"y": [1]},
    }


def test_unsubscribed_or_missing_topic_is_ignored():
    assert round_robin_assignment({"a": ["gone"]}, {"x": 2}) == {"a": {}}
    assert round_robin_assignment({}, {"x": 2}) == {}
