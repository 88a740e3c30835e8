"""Plans, whatever happens: brokers and topics come and go while earlier plans are carried out."""

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from kafscale.metadata.cluster.group_shards import SHARD_COUNT, SHARDS_TOPIC
from unit.broker.cluster.drawing_board import DrawingBoard, unevenness

BROKERS = range(5)
TOPICS = ("orders", "payments", "returns", "audit")

events = st.one_of(
    st.tuples(st.sampled_from(["join", "lose", "crash", "drain"]), st.sampled_from(BROKERS)),
    st.tuples(st.sampled_from(["create", "delete", "grow"]), st.sampled_from(TOPICS)),
    st.tuples(st.just("go on"), st.integers(0, 10)),
)
clusters = st.lists(st.integers(1, 12), min_size=1, max_size=8)


def happen(board, event, subject):
    """Let something happen, unless it cannot."""
    match event:
        case "go on":
            moving = [
                found for found in board.assignments.values() if found.reassigning_to is not None
            ]
            for found in moving[:subject]:
                if found.reassigning_to in board.brokers and _is_alive(board, found):
                    board.hand_over_one(found)
        case "create" | "grow" | "delete":
            change_topic(board, event, subject)
        case "join" if subject not in board.brokers:
            board.join(subject, rack="ab"[subject % 2])
        case "crash" | "lose" | "drain" if subject in board.brokers:
            if event == "crash":
                board.join(subject, rack="ab"[subject % 2])
            elif event == "lose":
                board.lose(subject)
            else:
                board.drain(subject)


def change_topic(board, event, name):
    if event == "create":
        board.topics.setdefault(name, 7)
    elif name in board.topics and event == "grow":
        board.topics[name] += 4
    elif name in board.topics:
        # The catalog deletes the assignments with the topic.
        del board.topics[name]
        for place in [place for place in board.assignments if place[0] == name]:
            del board.assignments[place]


def _is_alive(board, assignment):
    return assignment.is_of(board.brokers.get(assignment.broker_id))


def check(board, planned):
    """What holds for every plan."""
    for change in planned.changes:
        before, after = change.before, change.after
        place = (after.topic, after.partition)
        assert board.assignments.get(place) == before
        assert after.partition < board.topics[after.topic]
        if before is None:
            assert (after.leader_epoch, after.fully_rolled, after.reassigning_to) == (0, True, None)
            assert _is_alive(board, after)
        elif _is_alive(board, before):
            assert after.reassigning_to != before.reassigning_to
            assert after.leader_epoch == before.leader_epoch
            assert (after.broker_id, after.broker_epoch) == (before.broker_id, before.broker_epoch)
            if after.reassigning_to is not None:
                assert not board.brokers[after.reassigning_to].is_draining
                assert after.reassigning_to != after.broker_id
        else:
            owner = (before.broker_id, before.broker_epoch)
            assert owner in board.fenced or after.topic == SHARDS_TOPIC
            assert _is_alive(board, after)
            assert (after.leader_epoch, after.fully_rolled) == (before.leader_epoch + 1, False)
            assert after.reassigning_to is None
    for broker_id, epoch in planned.to_fence:
        found = board.brokers.get(broker_id)
        assert found is None or found.epoch > epoch
    assert not planned.to_fence & board.fenced


def check_moves(board):
    """So many moves, and to such brokers, may be under way after a plan."""
    for_balance = 0
    for found in board.assignments.values():
        if found.reassigning_to is not None and _is_alive(board, found):
            assert not board.brokers[found.reassigning_to].is_draining
            for_balance += not board.brokers[found.broker_id].is_draining
    assert for_balance <= board.moves_max


@given(st.lists(events, max_size=40), st.integers(1, 4))
def test_whatever_happens_every_plan_is_sound_and_all_ends_well(happenings, moves_max):
    board = DrawingBoard(0, moves_max=moves_max)
    for event, subject in happenings:
        happen(board, event, subject)
        planned = board.plan()
        check(board, planned)
        board.carry_out(planned)
        check_moves(board)
    if not board.brokers:
        board.join(9)
    for planned in board.settle()[0]:
        assert all(
            change.before is None or change.before.mod_revision for change in planned.changes
        )
    assert board.assignments.keys() == {
        (topic, number) for topic, count in board.topics.items() for number in range(count)
    }
    assert all(_is_alive(board, found) for found in board.assignments.values())
    staying = [number for number, broker in board.brokers.items() if not broker.is_draining]
    for shards in (True, False):
        counts = board.counts(shards=shards)
        if staying:
            assert unevenness({number: counts[number] for number in staying}) <= 1
            assert sum(counts[number] for number in staying) == counts.total()


@given(clusters, st.integers(1, 6))
def test_who_joins_gets_its_share_by_as_few_moves_as_possible(sizes, brokers):
    board = DrawingBoard(*range(brokers), moves_max=3)
    board.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    board.settle()
    board.join(brokers)
    plans, moves = board.settle()
    assert all(not planned.to_fence for planned in plans)
    assert moves <= ceil(sum(sizes) / (brokers + 1)) + ceil(SHARD_COUNT / (brokers + 1))
    assert unevenness(board.counts()) <= 1
    assert unevenness(board.counts(shards=True)) <= 1


@given(clusters, st.integers(2, 6), st.data())
def test_when_one_is_lost_only_what_it_had_changes_hands(sizes, brokers, data):
    board = DrawingBoard(*range(brokers))
    board.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    board.settle()
    before = dict(board.assignments)
    lost = data.draw(st.sampled_from(range(brokers)))
    board.lose(lost)
    _, moves = board.settle()
    assert moves == 0
    for place, found in board.assignments.items():
        assert found == before[place] or before[place].broker_id == lost
    assert unevenness(board.counts()) <= 1


@given(clusters, st.integers(2, 6), st.data())
def test_who_leaves_in_good_order_moves_what_it_has_and_nothing_else_does(sizes, brokers, data):
    board = DrawingBoard(*range(brokers))
    board.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    board.settle()
    leaving = data.draw(st.sampled_from(range(brokers)))
    had = board.counts()[leaving] + board.counts(shards=True)[leaving]
    board.drain(leaving)
    _, moves = board.settle()
    assert moves == had
    board.lose(leaving)
    assert board.settle() == ([], 0)


@given(clusters, st.integers(1, 3), st.integers(1, 3))
def test_racks_of_one_size_have_equally_many(sizes, racks, brokers_each):
    board = DrawingBoard()
    for number in range(racks * brokers_each):
        board.join(number, rack=f"rack {number % racks}")
    board.topics |= {f"topic-{number}": size for number, size in enumerate(sizes)}
    board.carry_out(board.plan())
    for topic in [None, *board.topics]:
        counts = board.counts(topic, shards=topic == SHARDS_TOPIC)
        by_rack = {
            rack: sum(counts[number] for number in range(rack, racks * brokers_each, racks))
            for rack in range(racks)
        }
        assert unevenness(by_rack) <= (1 if topic in {None, SHARDS_TOPIC} else brokers_each)


@given(clusters, st.integers(1, 6))
def test_topics_that_come_one_by_one_are_each_spread_as_widely_as_can_be(sizes, brokers):
    board = DrawingBoard(*range(brokers))
    for number, size in enumerate(sizes):
        board.topics[f"topic-{number}"] = size
        plans, moves = board.settle()
        assert (len(plans), moves) == (1, 0)
        assert unevenness(board.counts(f"topic-{number}")) <= 1
    assert unevenness(board.counts()) <= 1
