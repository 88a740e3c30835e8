"""Range: what Kafka's assignor of that name promises."""

from kafscale.groups.assignors import range_assignment


def test_each_topic_is_cut_into_contiguous_ranges_the_first_being_longer():
    subscriptions = dict.fromkeys("cab", ("x",))
    assert range_assignment(subscriptions, {"x": 8}) == {
        "a": {"x": [0, 1, 2]},
        "b": {"x": [3, 4, 5]},
        "c": {"x": [6, 7]},
    }


def test_topics_with_equally_many_partitions_are_co_partitioned():
    assignment = range_assignment(dict.fromkeys("ab", ("x", "y")), {"x": 3, "y": 3})
    assert all(topics["x"] == topics["y"] for topics in assignment.values())


def test_only_those_who_subscribe_share_a_topic():
    subscriptions = {"a": ["x"], "b": ["x", "y"], "c": ["y"]}
    assert range_assignment(subscriptions, {"x": 2, "y": 3}) == {
        "a": {"x": [0]},
        "b": {"x": [1], "y": [0, 1]},
        "c": {"y": [2]},
    }


def test_more_members_than_partitions_leave_some_with_nothing():
    assert range_assignment(dict.fromkeys("abc", ("x",)), {"x": 2})["c"] == {}


def test_static_members_come_first_in_the_order_of_their_instances():
    subscriptions = dict.fromkeys(["new-1", "new-2", "dynamic"], ("x",))
    instances = {"new-1": "second", "new-2": "first"}
    assert range_assignment(subscriptions, {"x": 3}, instances) == {
        "new-2": {"x": [0]},
        "new-1": {"x": [1]},
        "dynamic": {"x": [2]},
    }


def test_a_topic_that_does_not_exist_and_a_group_of_nobody_come_to_nothing():
    assert range_assignment({"a": ["gone"]}, {"x": 1}) == {"a": {}}
    assert range_assignment({}, {"x": 1}) == {}


def test_topics_may_go_by_their_ids():
    assert range_assignment({"a": [b"\1"]}, {b"\1": 1}) == {"a": {b"\1": [0]}}
