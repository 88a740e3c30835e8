"""The range assignor, as in Kafka."""

from kafscale.groups.assignors import range_assignment


def test_topics_are_split_into_contiguous_ranges():
    subscriptions = dict.fromkeys("cab", ("x",))
    assert range_assignment(subscriptions, {"x": 8}) == {
        "a": {"x": [0, 1, 2]},
        "b": {"x": [3, 4, 5]},
        "c": {"x": [6, 7]},
    }


def test_topics_with_equal_counts_are_co_partitioned():
    assignment = range_assignment(dict.fromkeys("ab", ("x", "y")), {"x": 3, "y": 3})
    assert all(topics["x"] == topics["y"] for topics in assignment.values())


def test_only_subscribers_share_a_topic():
    subscriptions = {"a": ["x"], "b": ["x", "y"], "c": ["y"]}
    assert range_assignment(subscriptions, {"x": 2, "y": 3}) == {
        "a": {"x": [0]},
        "b": {"x": [1], "y": [0, 1]},
        "c": {"y": [2]},
    }


def test_more_members_than_partitions():
    assert range_assignment(dict.fromkeys("abc", ("x",)), {"x": 2})["c"] == {}


def test_static_members_come_first_in_instance_order():
    subscriptions = dict.fromkeys(["new-1", "new-2", "dynamic"], ("x",))
    instances = {"new-1": "second", "new-2": "first"}
    assert range_assignment(subscriptions, {"x": 3}, instances) == {
        "new-2": {"x": [0]},
        "new-1": {"x": [1]},
        "dynamic": {"x": [2]},
    }


def test_missing_topic_and_empty_group():
    assert range_assignment({"a": ["gone"]}, {"x": 1}) == {"a": {}}
    assert range_assignment({}, {"x": 1}) == {}


def test_topics_by_id():
    assert range_assignment({"a": [b"\1"]}, {b"\1": 1}) == {"a": {b"\1": [0]}}
