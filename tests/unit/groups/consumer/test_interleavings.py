"""Whatever happens in whatever order: no partition has two owners, and all ends well."""

from itertools import combinations

from hypothesis import settings
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.effects import Reply
from kafscale.groups.events import TopicsChanged
from kafscale.groups.model import TopicInfo
from unit.groups.consumer.clients import ClassicClient, ModernClient, pairs
from unit.groups.consumer.driver import Driver

CLIENTS_MAX = 5
KINDS = ["modern", "static", "eager", "cooperative"]
which = some.integers(0, CLIENTS_MAX - 1)
manners = some.sampled_from(["obeys", "is slow", "misses the answer"])
wishes = some.sampled_from([("x", "y"), ("x",), ("y",)])
counts = some.sampled_from([{"x": 4, "y": 1}, {"x": 6}, {"x": 3, "y": 2}, {"y": 2}])
somebody_is_there = precondition(lambda self: self.clients)


class SavingDriver(Driver):
    """It knows what of the group is in the store: no more than must be, should it crash."""

    def feed(self, event):
        effects = super().feed(event)
        if any(effect.durable for effect in effects if isinstance(effect, Reply)):
            self.stored = self.group.record()
        return effects

    def crash(self):
        self.group = ConsumerGroup.restored(self.stored, self.settings, self.topics, self.now_ms)


class Interleavings(RuleBasedStateMachine):
    """Some clients, a coordinator, and the worst of luck."""

    def __init__(self):
        super().__init__()
        self.clients = []
        self.born_count = 0
        self.driver = SavingDriver(topics={}, downgrades=False)

    @initialize(
        counts=counts,
        assignor=some.sampled_from(["uniform", "range"]),
        kinds=some.lists(some.sampled_from(KINDS), min_size=1, max_size=3),
    )
    def begin(self, counts, assignor, kinds):
        self.driver = SavingDriver(topics={}, downgrades=False, consumer_assignors=(assignor,))
        self.driver.stored = self.driver.group.record()
        self.change_topics(counts)
        for kind in kinds:
            self.come(kind, ("x", "y"))
            self.behave()

    # --- what may happen

    @precondition(lambda self: len(self.clients) < CLIENTS_MAX)
    @rule(kind=some.sampled_from(KINDS), names=wishes)
    def come(self, kind, names):
        self.born_count += 1
        name = f"{kind}-{self.born_count}"
        if kind in {"modern", "static"}:
            instance = name if kind == "static" else None
            client = ModernClient(self.driver, name, names, instance)
        else:
            client = ClassicClient(self.driver, name, names, is_eager=kind == "eager")
        self.clients.append(client)
        client.beat()

    @somebody_is_there
    @rule(turns=some.lists(some.tuples(which, manners), min_size=1, max_size=4 * CLIENTS_MAX))
    def go_on(self, turns):
        for index, manner in turns:
            client = self.clients[index % len(self.clients)]
            if manner == "obeys":
                client.obey()
            client.beat(is_lost=manner == "misses the answer")
            self.check_owners()

    @somebody_is_there
    @rule()
    def behave(self):
        """Everybody does what it is told, for a while."""
        self.go_on([(index, "obeys") for index in range(len(self.clients))] * 2)

    @somebody_is_there
    @rule(index=which, names=wishes)
    def subscribe(self, index, names):
        self.clients[index % len(self.clients)].subscribe(names)

    @somebody_is_there
    @rule(index=which, dies=some.booleans())
    def go(self, index, dies):
        client = self.clients[index % len(self.clients)]
        self.clients.remove(client) if dies else client.leave()

    @rule(seconds=some.sampled_from([1, 30]))
    def wait(self, seconds):
        self.driver.wait(seconds * 1000)
        # Who was removed for its silence has heard nothing either, and gave up by itself.
        present = self.driver.group.record().members
        for client in self.clients:
            if client.member_id not in present:
                client.begin_again()

    @rule(counts=counts)
    def change_topics(self, counts):
        """Partitions are added, topics deleted and created, perhaps again."""
        before = self.driver.topics
        self.born_count += 1
        topics = {
            name: TopicInfo(
                name,
                before[name].id if name in before else f"{name}#{self.born_count}".encode(),
                max(count, before[name].partition_count) if name in before else count,
            )
            for name, count in counts.items()
        }
        self.driver.topics = topics
        self.driver.feed(TopicsChanged(topics=topics))

    @rule()
    def restart(self):
        self.driver.crash()

    # --- what must hold

    def owned(self, client):
        """What there is to own of a topic that is gone does not count."""
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
        """Targets share out everything that somebody reads."""
        record = self.driver.group.record()
        if record.generation > record.assignment_epoch or not record.members:
            return
        wanted = {name for member in record.members.values() for name in member.subscribed_names}
        everything = {
            (topic.id, number)
            for topic in self.driver.topics.values()
            if topic.name in wanted
            for number in range(topic.partition_count)
        }
        given_out = [pair for member in record.members.values() for pair in pairs(member.target)]
        assert sorted(given_out) == sorted(everything)

    def teardown(self):
        """When everybody behaves, everybody soon has what it is to have, and nothing is written."""
        for _ in range(20):
            self.wait(5)
            self.behave()
        record = self.driver.group.record()
        assert record.state == ("Stable" if self.clients else "Empty")
        assert record.members.keys() == {client.member_id for client in self.clients}
        for client in self.clients:
            assert client.owned == pairs(record.members[client.member_id].target)
            client.beat()
            assert not self.driver.saved


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)
