"""A consumer group on a clock, and short words for what happens to it.

A refusal is raised, so that tests read like the client: `driver.beat("a", 1)` is the answer.
"""

from kafscale.errors import KafscaleError
from kafscale.groups.config import GroupSettings
from kafscale.groups.consumer import ConsumerGroup
from kafscale.groups.consumer_protocol import Subscription, decode_assignment, encode_subscription
from kafscale.groups.effects import Rebalanced, Reply, Save
from kafscale.groups.events import (
    ConsumerHeartbeat,
    Heartbeat,
    Join,
    Leave,
    Leaver,
    Sync,
    Tick,
    TopicsChanged,
)
from kafscale.groups.model import TopicInfo

REBALANCE_MS = 60_000
SESSION_MS = 45_000
TICKET = 7
START_MS = 1_000_000


def facts(**counts):
    """Topics by name, with as many partitions; their ids are their names as bytes."""
    return {name: TopicInfo(name, name.encode(), count) for name, count in counts.items()}


def parts(**numbers):
    """Partitions by topic: `parts(x=(0, 1))`."""
    return {name.encode(): frozenset(some) for name, some in numbers.items()}


class Driver:
    def __init__(self, *, topics=None, group=None, **settings):
        self.settings = GroupSettings(**settings)
        self.topics = facts(x=4) if topics is None else topics
        self.now_ms = START_MS
        self.group = group or ConsumerGroup("g", self.settings, self.topics, self.now_ms)
        self.effects = []

    # --- the new protocol

    def beat(self, member, epoch, **fields):
        return self.ask(
            ConsumerHeartbeat(ticket=TICKET, member_id=member, member_epoch=epoch, **fields)
        )

    def enter(self, member, *names, **fields):
        """Join; the topic x where no other is named."""
        fields.setdefault("owned", {})
        fields.setdefault("rebalance_timeout_ms", REBALANCE_MS)
        return self.beat(member, 0, subscribed_names=names or ("x",), **fields)

    # --- the classic protocol

    def join(self, member, *names, owned=(), protocols=("range",), **fields):
        metadata = encode_subscription(Subscription(names or ("x",), owned=tuple(owned)))
        offers = tuple((name, metadata) for name in protocols)
        return self.offer(member, offers, **fields)

    def offer(self, member, protocols, **fields):
        fields = {
            "fresh_id": f"{member}-fresh",
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": protocols,
        } | fields
        return self.ask(Join(ticket=TICKET, member_id=member, **fields))

    def sync(self, member, generation, **fields):
        fields = {"assignments": {}, **fields}
        answer = self.ask(Sync(ticket=TICKET, member_id=member, generation=generation, **fields))
        return decode_assignment(answer.assignment)

    def classic_beat(self, member, generation, **fields):
        return self.ask(Heartbeat(ticket=TICKET, member_id=member, generation=generation, **fields))

    def leave(self, *members):
        leavers = tuple(Leaver(member_id=name, instance_id=instance) for name, instance in members)
        return [error for *_, error in self.ask(Leave(ticket=TICKET, members=leavers)).members]

    # --- the world

    def change_topics(self, **counts):
        self.topics = facts(**counts)
        return self.feed(TopicsChanged(topics=self.topics))

    def wait(self, passed_ms):
        self.now_ms += passed_ms
        return self.feed(Tick())

    def restart(self):
        """Another coordinator takes over, with what was saved."""
        self.group = ConsumerGroup.restored(
            self.group.record(), self.settings, self.topics, self.now_ms
        )

    def ask(self, event):
        (reply,) = (e for e in self.feed(event) if isinstance(e, Reply))
        assert reply.ticket == TICKET
        if isinstance(reply.answer, KafscaleError):
            raise reply.answer
        return reply.answer

    def feed(self, event):
        self.effects = self.group.handle(event, self.now_ms)
        return self.effects

    # --- what came of it

    @property
    def saved(self):
        return any(isinstance(effect, Save) for effect in self.effects)

    @property
    def durable(self):
        return any(effect.durable for effect in self.effects if isinstance(effect, Reply))

    @property
    def rebalanced(self):
        return any(isinstance(effect, Rebalanced) for effect in self.effects)

    def member(self, member):
        return self.group.record().members[member]
