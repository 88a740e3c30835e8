"""Clients, coordinators, partitions and time, in any order: the invariants of transactions.

A transaction is committed or aborted in all partitions, never both, and only committed if its
client wants it. What a client knows of the outcome is true. No two producers have the same producer
id and epoch. Once the clients are undisturbed, no transaction stays open, and each can begin
another.
"""

import itertools
from random import Random

import pytest
from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafscale.transactions.model import EPOCH_MAX, TransactionVersion
from unit.transactions.simulated_coordinator import TIMEOUT_MS, Client, Coordinator, Outcomes, Phase

CLIENT_COUNT = 2
ACTS_MAX = 50
EPOCHS = [0, EPOCH_MAX - 6, EPOCH_MAX - 3, EPOCH_MAX - 2, EPOCH_MAX - 1]
VERSIONS = [TransactionVersion.V0, TransactionVersion.V2]
DURATIONS_MS = [1, TIMEOUT_MS // 2, TIMEOUT_MS]

clients = strategies.integers(0, CLIENT_COUNT - 1)
choices = strategies.integers(0, 11)


class Interleavings(RuleBasedStateMachine):
    @initialize(
        epoch=strategies.sampled_from(EPOCHS),
        versions=strategies.lists(
            strategies.sampled_from(VERSIONS), min_size=CLIENT_COUNT, max_size=CLIENT_COUNT
        ),
    )
    def begin(self, epoch, versions):
        self.coordinator = Coordinator(epoch)
        self.outcomes = Outcomes()
        numbers = itertools.count(1)
        self.clients = [
            Client(self.coordinator, self.outcomes, numbers, version) for version in versions
        ]

    # --- steps ----------------------------------------------------------------------------------

    @rule(client=clients, choice=choices)
    def act(self, client, choice):
        self.clients[client].act(choice)

    @rule(client=clients, some=strategies.lists(choices, min_size=1, max_size=8))
    def act_undisturbed(self, client, some):
        for choice in some:
            self.clients[client].act(choice)
            self.coordinator.flush()

    @rule()
    def flush(self):
        self.coordinator.flush()

    @rule()
    def crash(self):
        self.coordinator.crash()

    @rule(index=choices, is_confirmed=strategies.booleans())
    def deliver(self, index, is_confirmed):
        self.coordinator.deliver(index, is_confirmed=is_confirmed)

    @rule(duration_ms=strategies.sampled_from(DURATIONS_MS))
    def pass_time(self, duration_ms):
        self.coordinator.pass_time(duration_ms)

    # --- invariants -----------------------------------------------------------------------------

    @invariant()
    def check_outcomes(self):
        found: dict[int, bool] = {}
        for log in self.coordinator.logs:
            for number, is_commit in log.outcomes.items():
                assert found.setdefault(number, is_commit) == is_commit, "one outcome"
        committed = {number for number, is_commit in found.items() if is_commit}
        assert committed <= self.outcomes.may_commit
        assert not committed & self.outcomes.aborted
        assert not (found.keys() - committed) & self.outcomes.committed

    def teardown(self):
        """Undisturbed, nothing stays open, and every client can commit."""
        self.coordinator.settle()
        self.coordinator.pass_time(2 * TIMEOUT_MS)
        self.coordinator.settle()
        for log in self.coordinator.logs:
            assert not any(log.open.values())
        self.check_outcomes()
        for number in self.outcomes.committed:
            for partition in self.outcomes.written.get(number, set()):
                assert self.coordinator.logs[partition].outcomes[number]
        for client in self.clients:
            self.commit(client)
        self.check_outcomes()

    def commit(self, client):
        """Begin, write, and commit, without disturbance."""
        known = len(self.outcomes.committed)
        for act in range(ACTS_MAX):
            # Begin with two partitions, write to one, then commit.
            client.act((2, 1, 0)[act % 3])
            self.coordinator.settle()
            if len(self.outcomes.committed) > known and client.phase is Phase.READY:
                return
        raise AssertionError("the client cannot commit")


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=25, stateful_step_count=30)
"""Few examples, because Hypothesis is slow but finds short ones; the random runs go farther."""


@pytest.mark.parametrize("block", range(4))
def test_long_random_runs(block):
    for seed in range(block * 100, block * 100 + 100):
        run_random(seed)


def run_random(seed: int) -> None:
    """A random sequence of all steps; a failing seed can be repeated."""
    random = Random(seed)
    machine = Interleavings()
    machine.begin(random.choice(EPOCHS), random.choices(VERSIONS, k=CLIENT_COUNT))

    def client() -> int:
        return random.choice([0] * 3 + [1])

    def choice() -> int:
        return random.randrange(12)

    steps = [
        *[lambda: machine.act(client(), choice())] * 4,
        *[lambda: machine.act_undisturbed(client(), random.choices(range(12), k=5))] * 4,
        *[machine.flush] * 3,
        machine.crash,
        *[lambda: machine.deliver(choice(), random.random() < 0.8)] * 6,
        lambda: machine.pass_time(random.choice(DURATIONS_MS)),
    ]
    for _ in range(random.randrange(10, 150)):
        random.choice(steps)()
        machine.check_outcomes()
    machine.teardown()
