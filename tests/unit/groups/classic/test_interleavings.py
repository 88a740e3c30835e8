"""Clients, time and coordinators, in any order: the invariants of a classic group.

No two members of a generation own one partition, the leader's bytes reach every member unchanged, a
member keeps its assignment until the next generation, every request gets one response, and once the
clients are undisturbed, the group becomes stable with all of them.
"""

from random import Random

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafscale.groups.classic import ClassicGroup, State
from unit.groups.classic.simulated_group import (
    PARTITION_COUNT,
    SETTINGS,
    AssignmentLog,
    Client,
    Coordinator,
    Phase,
)

NAMES = "abcde"
"""One more than the group's size limit."""
ROUNDS_MAX = 200
ROUND_MS = 1_500
DURATIONS_MS = [0, 1, 100, 2_999, 3_000, 9_999, 20_000]

names = strategies.sampled_from(NAMES)


class Interleavings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.assignment_log = AssignmentLog()
        self.rebalance_timeout_ms = 20_000
        self.clients = {name: self.client(name) for name in NAMES}
        self.running: set[str] = set()

    def client(self, name: str) -> Client:
        client = Client(name, self.coordinator, self.assignment_log)
        client.rebalance_timeout_ms = self.rebalance_timeout_ms
        return client

    @initialize(
        group=strategies.sets(names), rebalance_timeout_ms=strategies.sampled_from([5_000, 20_000])
    )
    def begin(self, group, rebalance_timeout_ms):
        self.rebalance_timeout_ms = rebalance_timeout_ms
        for name in sorted(group):
            self.start(name, requires_known_member_id=True)
        self.run_rounds(8)

    def idle(self, name: str) -> Client | None:
        """A running client without a pending request."""
        client = self.clients[name]
        is_busy = client.phase in {Phase.JOINING, Phase.SYNCING}
        return client if name in self.running and not is_busy else None

    # --- clients --------------------------------------------------------------------------------

    @rule(name=names, requires_known_member_id=strategies.booleans())
    def start(self, name, requires_known_member_id):
        """Start or restart a client; a pending request of its predecessor is lost."""
        self.clients[name] = self.client(name)
        self.clients[name].requires_known_member_id = requires_known_member_id
        self.running.add(name)
        self.clients[name].act()

    @rule(name=names)
    def act(self, name):
        if client := self.idle(name):
            client.act()

    @rule(rounds=strategies.integers(1, 5))
    def run_rounds(self, rounds):
        """Run without incidents for a while."""
        for _ in range(rounds):
            for name in sorted(self.running):
                self.act(name)
            self.coordinator.flush()
            self.coordinator.pass_time(ROUND_MS)

    @rule()
    def act_all(self):
        """All clients send their next requests, faster than the store."""
        for name in sorted(self.running):
            self.act(name)

    @rule(name=names)
    def rejoin(self, name):
        if client := self.idle(name):
            client.join()

    @rule(name=names)
    def change_subscription(self, name):
        self.clients[name].metadata_version += 1
        self.rejoin(name)

    @rule(name=names)
    def reconnect_and_retry(self, name):
        """The response of a pending request is lost; the group cannot know that."""
        client = self.clients[name]
        if name not in self.running or self.idle(name):
            return
        if client.reply_token in self.coordinator.waiting:
            self.coordinator.waiting[client.reply_token] = lambda _answer: None
        if client.phase is Phase.JOINING:
            client.join()
        else:
            client.sync()

    @rule(name=names)
    def leave(self, name):
        if client := self.idle(name):
            client.leave()
            self.running.discard(name)

    @rule(name=names)
    def crash_client(self, name):
        self.running.discard(name)

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
    def transfer(self):
        self.coordinator.transfer()

    # --- invariants -----------------------------------------------------------------------------

    @invariant()
    def check_deadline(self):
        state = self.coordinator.group._group_state
        first_ms = state.next_deadline_ms()
        assert first_ms is None or state.deadline_ms <= first_ms

    @invariant()
    def check_no_pending_requests(self):
        if self.coordinator.is_stable:
            assert not self.coordinator.waiting

    @invariant()
    def check_record(self):
        group = self.coordinator.group
        if group.state == State.STABLE and group.member_count <= SETTINGS.size_max:
            record = group.record()
            again = ClassicGroup.restored(record, SETTINGS, self.coordinator.now_ms).record()
            assert again.state == record.state
            assert {each.member_id: each.assignment for each in again.members.values()} == {
                each.member_id: each.assignment for each in record.members.values()
            }

    def teardown(self):
        """Undisturbed, the running clients form a stable group, and the others expire."""
        for _ in range(ROUNDS_MAX):
            self.coordinator.flush()
            if self.coordinator.is_stable and self.is_complete():
                break
            self.run_rounds(1)
        else:
            raise AssertionError("the group does not become stable")
        owned = self.assignment_log.owned.get(self.coordinator.group.record().generation, {})
        members = [client for client in self.clients.values() if self.is_inside(client)]
        shares = [owned[member.instance_id or member.member_id] for member in members]
        assert sorted(b"".join(shares)) == (list(range(PARTITION_COUNT)) if members else [])

    def is_complete(self) -> bool:
        """Whether all running clients are in the group, up to its limit, and no others."""
        count = sum(map(self.is_inside, self.clients.values()))
        is_enough = count == len(self.running) or count >= SETTINGS.size_max
        return is_enough and count == self.coordinator.group.member_count

    def is_inside(self, client: Client) -> bool:
        generation = self.coordinator.group.record().generation
        is_member = client.phase is Phase.MEMBER and client.generation == generation
        return is_member and client.name in self.running


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=25, stateful_step_count=20)
"""Few examples, because Hypothesis is slow but finds short ones; the random runs go farther."""


@pytest.mark.parametrize("block", range(8))
def test_long_random_runs(block):
    for seed in range(block * 50, block * 50 + 50):
        run_random(seed)


def run_random(seed: int) -> None:
    """A random sequence of all operations; a failing seed can be repeated."""
    random = Random(seed)
    machine = Interleavings()
    machine.begin(
        set(random.sample(NAMES, random.randrange(len(NAMES) + 1))),
        rebalance_timeout_ms=random.choice([5_000, 20_000]),
    )
    steps = [
        *[
            lambda: machine.start(
                random.choice(NAMES), requires_known_member_id=random.random() < 0.5
            )
        ]
        * 2,
        *[lambda: machine.act(random.choice(NAMES))] * 4,
        *[machine.act_all] * 2,
        *[lambda: machine.run_rounds(random.randrange(1, 4))] * 3,
        lambda: machine.rejoin(random.choice(NAMES)),
        lambda: machine.change_subscription(random.choice(NAMES)),
        lambda: machine.reconnect_and_retry(random.choice(NAMES)),
        lambda: machine.leave(random.choice(NAMES)),
        lambda: machine.crash_client(random.choice(NAMES)),
        *[lambda: machine.pass_time(random.choice(DURATIONS_MS))] * 3,
        *[machine.coordinator.flush] * 2,
        machine.crash,
        machine.transfer,
    ]
    for _ in range(60):
        random.choice(steps)()
        machine.check_deadline()
        machine.check_no_pending_requests()
        machine.check_record()
    machine.teardown()
