"""Clients, time and coordinators, in whatever order: what a group promises, it keeps.

No two members of a generation own one partition, the leader's bytes reach every member untouched, a
member keeps what it got until the next generation, everybody who waits is answered once, and when
the clients are left in peace, the group settles with all of them.
"""

from random import Random

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafscale.groups.classic import ClassicGroup, State
from unit.groups.classic.cluster import (
    PARTITION_COUNT,
    SETTINGS,
    Chronicle,
    Client,
    Coordinator,
    Phase,
)

NAMES = "abcde"
"""One more than the group may have."""
ROUNDS_MAX = 200
ROUND_MS = 1_500
DURATIONS_MS = [0, 1, 100, 2_999, 3_000, 9_999, 20_000]

names = strategies.sampled_from(NAMES)


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.chronicle = Chronicle()
        self.rebalance_timeout_ms = 20_000
        self.clients = {name: self.client(name) for name in NAMES}
        self.living: set[str] = set()

    def client(self, name: str) -> Client:
        client = Client(name, self.coordinator, self.chronicle)
        client.rebalance_timeout_ms = self.rebalance_timeout_ms
        return client

    @initialize(
        group=strategies.sets(names), rebalance_timeout_ms=strategies.sampled_from([5_000, 20_000])
    )
    def begin(self, group, rebalance_timeout_ms):
        self.rebalance_timeout_ms = rebalance_timeout_ms
        for name in sorted(group):
            self.start(name, must_know_id=True)
        self.live(8)

    def idle(self, name: str) -> Client | None:
        """A client that lives and does not wait for anything."""
        client = self.clients[name]
        is_busy = client.phase in {Phase.JOINING, Phase.SYNCING}
        return client if name in self.living and not is_busy else None

    # --- clients --------------------------------------------------------------------------------

    @rule(name=names, must_know_id=strategies.booleans())
    def start(self, name, must_know_id):
        """Begin, or begin again: the one before is gone, and so is who waited for it."""
        self.clients[name] = self.client(name)
        self.clients[name].must_know_id = must_know_id
        self.living.add(name)
        self.clients[name].act()

    @rule(name=names)
    def act(self, name):
        if client := self.idle(name):
            client.act()

    @rule(rounds=strategies.integers(1, 5))
    def live(self, rounds):
        """Nothing remarkable happens for a while."""
        for _ in range(rounds):
            for name in sorted(self.living):
                self.act(name)
            self.coordinator.flush()
            self.coordinator.pass_time(ROUND_MS)

    @rule()
    def act_all(self):
        """All do what is next, faster than the store."""
        for name in sorted(self.living):
            self.act(name)

    @rule(name=names)
    def rejoin(self, name):
        if client := self.idle(name):
            client.join()

    @rule(name=names)
    def subscribe_to_something_else(self, name):
        self.clients[name].metadata_version += 1
        self.rejoin(name)

    @rule(name=names)
    def lose_the_connection_and_try_again(self, name):
        """What the client waited for goes to nobody; the group cannot know that."""
        client = self.clients[name]
        if name not in self.living or self.idle(name):
            return
        if client.ticket in self.coordinator.waiting:
            self.coordinator.waiting[client.ticket] = lambda _answer: None
        if client.phase is Phase.JOINING:
            client.join()
        else:
            client.sync()

    @rule(name=names)
    def leave(self, name):
        if client := self.idle(name):
            client.leave()
            self.living.discard(name)

    @rule(name=names)
    def die(self, name):
        self.living.discard(name)

    # --- time and coordinators ------------------------------------------------------------------

    @rule(duration_ms=strategies.sampled_from(DURATIONS_MS))
    def pass_time(self, duration_ms):
        self.coordinator.pass_time(duration_ms)

    @precondition(lambda self: self.coordinator.is_saving)
    @rule()
    def flush(self):
        self.coordinator.flush()

    @rule()
    def crash(self):
        self.coordinator.crash()

    @rule()
    def hand_over(self):
        self.coordinator.hand_over()

    # --- what always holds ----------------------------------------------------------------------

    @invariant()
    def a_tick_comes_in_time(self):
        standing = self.coordinator.group._standing
        first_ms = standing.first_due_ms()
        assert first_ms is None or standing.due_ms <= first_ms

    @invariant()
    def nobody_waits_in_a_group_that_is_settled(self):
        if self.coordinator.is_settled:
            assert not self.coordinator.waiting

    @invariant()
    def a_record_says_everything_of_a_stable_group(self):
        group = self.coordinator.group
        if group.state == State.STABLE and group.member_count <= SETTINGS.size_max:
            record = group.record()
            again = ClassicGroup.restored(record, SETTINGS, self.coordinator.now_ms).record()
            assert again.state == record.state
            assert {each.member_id: each.assignment for each in again.members.values()} == {
                each.member_id: each.assignment for each in record.members.values()
            }

    def teardown(self):
        """Left in peace, the living find each other, and the dead are forgotten."""
        for _ in range(ROUNDS_MAX):
            self.coordinator.flush()
            if self.coordinator.is_settled and self.is_complete():
                break
            self.live(1)
        else:
            raise AssertionError("the group does not settle")
        owned = self.chronicle.owned.get(self.coordinator.group.record().generation, {})
        members = [client for client in self.clients.values() if self.is_inside(client)]
        shares = [owned[member.instance_id or member.member_id] for member in members]
        assert sorted(b"".join(shares)) == (list(range(PARTITION_COUNT)) if members else [])

    def is_complete(self) -> bool:
        """Whether all who live are in the group, or as many as may be, and nobody else is."""
        count = sum(map(self.is_inside, self.clients.values()))
        is_enough = count == len(self.living) or count >= SETTINGS.size_max
        return is_enough and count == self.coordinator.group.member_count

    def is_inside(self, client: Client) -> bool:
        generation = self.coordinator.group.record().generation
        is_member = client.phase is Phase.MEMBER and client.generation == generation
        return is_member and client.name in self.living


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=25, stateful_step_count=20)
"""Few, because Hypothesis takes its time; but it finds short stories. The walks go farther."""


@pytest.mark.parametrize("block", range(8))
def test_long_walks_end_well(block):
    for seed in range(block * 50, block * 50 + 50):
        walk(seed)


def walk(seed: int) -> None:
    """Everything that can happen, at random; a seed that fails does so again."""
    random = Random(seed)
    machine = Interleavings()
    machine.begin(
        set(random.sample(NAMES, random.randrange(len(NAMES) + 1))),
        rebalance_timeout_ms=random.choice([5_000, 20_000]),
    )
    steps = [
        *[lambda: machine.start(random.choice(NAMES), must_know_id=random.random() < 0.5)] * 2,
        *[lambda: machine.act(random.choice(NAMES))] * 4,
        *[machine.act_all] * 2,
        *[lambda: machine.live(random.randrange(1, 4))] * 3,
        lambda: machine.rejoin(random.choice(NAMES)),
        lambda: machine.subscribe_to_something_else(random.choice(NAMES)),
        lambda: machine.lose_the_connection_and_try_again(random.choice(NAMES)),
        lambda: machine.leave(random.choice(NAMES)),
        lambda: machine.die(random.choice(NAMES)),
        *[lambda: machine.pass_time(random.choice(DURATIONS_MS))] * 3,
        *[machine.coordinator.flush] * 2,
        machine.crash,
        machine.hand_over,
    ]
    for _ in range(60):
        random.choice(steps)()
        machine.a_tick_comes_in_time()
        machine.nobody_waits_in_a_group_that_is_settled()
        machine.a_record_says_everything_of_a_stable_group()
    machine.teardown()
