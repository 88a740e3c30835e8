"""The uniform assignor: balance first, then stickiness, for any subscriptions and owners."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as some

from kafscale.groups.assignors import uniform_assignment

TOPICS = "uvwxyz"
members = some.sampled_from([f"m{number}" for number in range(8)])
topics = some.sampled_from(TOPICS)
counts = some.dictionaries(topics, some.integers(1, 9))
subscriptions = some.dictionaries(members, some.sets(topics))
owned = some.dictionaries(members, some.dictionaries(topics, some.sets(some.integers(0, 9))))


def pairs(topics_of_one):
    return {(topic, number) for topic, numbers in topics_of_one.items() for number in numbers}


def load(topics_of_one):
    return sum(map(len, topics_of_one.values()))


@given(subscriptions, counts, owned)
def test_every_subscribed_partition_has_one_subscribed_owner(wants, counts, owned):
    assignment = uniform_assignment(wants, counts, owned)
    assert assignment.keys() == wants.keys()
    for member, topics_of_one in assignment.items():
        assert topics_of_one.keys() <= wants[member]
        assert all(numbers == sorted(numbers) != [] for numbers in topics_of_one.values())
    assigned = [pair for topics_of_one in assignment.values() for pair in pairs(topics_of_one)]
    resolve = {
        topic: range(counts[topic]) for topic in set().union(*wants.values()) & counts.keys()
    }
    assert sorted(assigned) == sorted(pairs(resolve))


@given(subscriptions, counts, owned)
def test_assignment_is_balanced(wants, counts, owned):
    assignment = uniform_assignment(wants, counts, owned)
    for rich, poor in permutations(assignment, 2):
        if assignment[rich].keys() & wants[poor]:
            assert load(assignment[rich]) - load(assignment[poor]) < 2


@given(some.sets(members, min_size=1), counts, owned)
def test_equal_subscriptions_move_as_little_as_possible(group, counts, owned):
    assignment = uniform_assignment(dict.fromkeys(group, TOPICS), counts, owned)
    loads = [load(topics_of_one) for topics_of_one in assignment.values()]
    assert max(loads) - min(loads) < 2

    exclusive = {}
    for member in sorted(group):
        for topic, number in pairs(owned.get(member, {})):
            if number < counts.get(topic, 0):
                exclusive.setdefault((topic, number), member)
    kept = {member: sum(owner == member for owner in exclusive.values()) for member in assignment}
    quota, extra = divmod(sum(counts.values()), len(group))
    with_more = sum(count > quota for count in kept.values())
    possible = sum(min(count, quota) for count in kept.values()) + min(with_more, extra)
    stayed = sum(pair in pairs(assignment[member]) for pair, member in exclusive.items())
    assert stayed == possible


@given(subscriptions, counts)
def test_balanced_assignment_is_kept(wants, counts):
    assignment = uniform_assignment(wants, counts)
    assert uniform_assignment(wants, counts, assignment) == assignment


@given(some.integers(2, 8), counts)
def test_leaving_member_moves_only_its_own_partitions(member_count, counts):
    group = [f"m{number}" for number in range(member_count)]
    before = uniform_assignment(dict.fromkeys(group, TOPICS), counts)
    after = uniform_assignment(dict.fromkeys(group[1:], TOPICS), counts, before)
    assert all(pairs(before[member]) <= pairs(after[member]) for member in group[1:])


def test_a_thousand_members_and_partitions():
    group = [f"m{number}" for number in range(1000)]
    assignment = uniform_assignment(dict.fromkeys(group, ("x",)), {"x": 1000})
    after = uniform_assignment(dict.fromkeys([*group, "new"], ("x",)), {"x": 1000}, assignment)
    assert {load(topics_of_one) for topics_of_one in assignment.values()} == {1}
    assert after == {**assignment, "new": {}}
