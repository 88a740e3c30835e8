"""Events in any order: no partition has two owners, and the group becomes stable."""

from itertools import combinations

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.effects import Reply
from kafscale.groups.events import TopicsChanged
from kafscale.groups.model import TopicInfo
from unit.groups.consumer.clients import ClassicClient, ConsumerClient, pairs
from unit.groups.consumer.driver import Driver

CLIENTS_MAX = 5
CLIENT_TYPES = ["modern", "static", "eager", "cooperative"]
which = some.integers(0, CLIENTS_MAX - 1)
behaviors = some.sampled_from(["follows", "is slow", "misses the response"])
subscription_names = some.sampled_from([("x", "y"), ("x",), ("y",)])
counts = some.sampled_from([{"x": 4, "y": 1}, {"x": 6}, {"x": 3, "y": 2}, {"y": 2}])
has_clients = precondition(lambda self: self.clients)


class SavingDriver(Driver):
    """Keeps what is in the store: only what a durable response guarantees, for a crash."""

    def feed(self, event):
        effects = super().feed(event)
        if any(effect.is_durable for effect in effects if isinstance(effect, Reply)):
            self.stored = self.group.record()
        return effects

    def crash(self):
        self.group = ConsumerGroup.restored(self.stored, self.settings, self.topics, self.now_ms)


class Interleavings(RuleBasedStateMachine):
    """Clients, a coordinator, and faults."""

    def __init__(self):
        super().__init__()
        self.clients = []
        self.client_count = 0
        self.driver = SavingDriver(topics={}, downgrades=False)

    @initialize(
        counts=counts,
        assignor=some.sampled_from(["uniform", "range"]),
        client_types=some.lists(some.sampled_from(CLIENT_TYPES), min_size=1, max_size=3),
    )
    def begin(self, counts, assignor, client_types):
        self.driver = SavingDriver(topics={}, downgrades=False, consumer_assignors=(assignor,))
        self.driver.stored = self.driver.group.record()
        self.change_topics(counts)
        for group_type in client_types:
            self.add_client(group_type, ("x", "y"))
            self.behave()

    # --- events

    @precondition(lambda self: len(self.clients) < CLIENTS_MAX)
    @rule(group_type=some.sampled_from(CLIENT_TYPES), names=subscription_names)
    def add_client(self, group_type, names):
        self.client_count += 1
        name = f"{group_type}-{self.client_count}"
        if group_type in {"modern", "static"}:
            instance = name if group_type == "static" else None
            client = ConsumerClient(self.driver, name, names, instance)
        else:
            client = ClassicClient(self.driver, name, names, is_eager=group_type == "eager")
        self.clients.append(client)
        client.heartbeat()

    @has_clients
    @rule(turns=some.lists(some.tuples(which, behaviors), min_size=1, max_size=4 * CLIENTS_MAX))
    def send_heartbeats(self, turns):
        for index, behavior in turns:
            client = self.clients[index % len(self.clients)]
            if behavior == "follows":
                client.apply_assignment()
            client.heartbeat(is_lost=behavior == "misses the response")
            self.check_owners()

    @has_clients
    @rule()
    def behave(self):
        """All clients follow their assignments, for a while."""
        self.send_heartbeats([(index, "follows") for index in range(len(self.clients))] * 2)

    @has_clients
    @rule(index=which, names=subscription_names)
    def subscribe(self, index, names):
        self.clients[index % len(self.clients)].subscribe(names)

    @has_clients
    @rule(index=which, dies=some.booleans())
    def remove_client(self, index, dies):
        client = self.clients[index % len(self.clients)]
        self.clients.remove(client) if dies else client.leave()

    @rule(seconds=some.sampled_from([1, 30]))
    def wait(self, seconds):
        self.driver.wait(seconds * 1000)
        # A member that was removed got no response either, and has revoked everything.
        present = self.driver.group.record().members
        for client in self.clients:
            if client.member_id not in present:
                client.restart()

    @rule(counts=counts)
    def change_topics(self, counts):
        """Partitions are added, topics deleted and created, perhaps again."""
        before = self.driver.topics
        self.client_count += 1
        topics = {
            name: TopicInfo(
                name,
                before[name].id if name in before else f"{name}#{self.client_count}".encode(),
                max(count, before[name].partition_count) if name in before else count,
            )
            for name, count in counts.items()
        }
        self.driver.topics = topics
        self.driver.feed(TopicsChanged(topics=topics))

    @rule()
    def restart(self):
        self.driver.crash()

    # --- invariants

    def owned(self, client):
        """What a client owns, without deleted topics."""
        there = {topic.id for topic in self.driver.topics.values()}
        return {(topic, number) for topic, number in client.owned if topic in there}

    @invariant()
    def check_owners(self):
        """No partition has two owners, and the group knows of each."""
        for one, other in combinations(self.clients, 2):
            assert not self.owned(one) & self.owned(other), (one.member_id, other.member_id)
        members = self.driver.group.record().members
        for client in self.clients:
            if client.member_id in members:
                member = members[client.member_id]
                assert self.owned(client) <= pairs(member.assigned) | pairs(member.revoking)

    @invariant()
    def check_targets(self):
        """Targets contain every subscribed partition exactly once."""
        record = self.driver.group.record()
        if record.generation > record.assignment_epoch or not record.members:
            return
        resolve = {name for member in record.members.values() for name in member.subscribed_names}
        everything = {
            (topic.id, number)
            for topic in self.driver.topics.values()
            if topic.name in resolve
            for number in range(topic.partition_count)
        }
        assigned = [pair for member in record.members.values() for pair in pairs(member.target)]
        assert sorted(assigned) == sorted(everything)

    def teardown(self):
        """Undisturbed, all clients soon have their targets, and nothing more is written."""
        for _ in range(20):
            self.wait(5)
            self.behave()
        record = self.driver.group.record()
        assert record.state == ("Stable" if self.clients else "Empty")
        assert record.members.keys() == {client.member_id for client in self.clients}
        for client in self.clients:
            assert client.owned == pairs(record.members[client.member_id].target)
            client.heartbeat()
            assert not self.driver.saved


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
